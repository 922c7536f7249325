"""NodeQueues: binds to one node go one after the other in the order of decisions, and nobody else waits for them."""

from __future__ import annotations

import asyncio

from spinney.api.core import ConfigMap, Pod
from spinney.kube.client.transport import Request
from spinney.kube.errors import ConnectionLost
from spinney.services.binder.component import COMPONENT as BINDER
from spinney.services.binder.component import BinderSettings
from spinney.services.binder.node_queues import NodeQueues
from tests.services.binder.binding import PARTS, made_volume, one_device, outcome, pod, request, tell_device
from tests.services.stage import Stage, stage
from tests.virtual_time import virtual


class Server:
    """Notes which bindings are asked for, and answers each when the test says so."""

    def __init__(self, world: Stage) -> None:
        self.asked: list[str] = []
        self._answers: dict[str, asyncio.Event] = {}
        world.transport.before = self._hold

    def answer(self, name: str) -> None:
        """Let a pod's binding through, now or when it comes."""
        self._answers.setdefault(name, asyncio.Event()).set()

    async def _hold(self, sent: Request) -> None:
        if sent.path.endswith("/binding"):
            name = sent.path.split("/")[-2]
            self.asked.append(name)
            await self._answers.setdefault(name, asyncio.Event()).wait()


@virtual
async def test_binds_to_one_node_keep_their_order() -> None:
    """The next is asked for when the one before has been answered, however long that takes."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        server = Server(world)
        names = ["c", "a", "d", "b"]
        for name in names:
            await request(world, await pod(world, name))
        for index, name in enumerate(names):
            await asyncio.sleep(5)
            assert server.asked == names[: index + 1]
            server.answer(name)
        await asyncio.sleep(5)
        assert await world.placed("") == dict.fromkeys(names, "n1")


@virtual
async def test_the_order_of_a_gang_is_that_of_its_requests() -> None:
    """Also where the decision is complete only with the last of them."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        server = Server(world)
        names = ["c", "a", "b"]
        for name in names:
            server.answer(name)
            await request(world, await pod(world, name), decision=("d", 3))
        await asyncio.sleep(5)
        assert server.asked == names


@virtual
async def test_a_binding_without_an_answer_delays_no_other_node() -> None:
    """And the pods of its own node only until its time is up; it is tried again behind them."""
    async with stage((BINDER, BinderSettings(bind_timeout_seconds=30))) as world:
        await world.node("n1")
        await world.node("n2")
        server = Server(world)
        for name in ("behind", "elsewhere"):
            server.answer(name)
        await request(world, await pod(world, "stuck"), "n1")
        await request(world, await pod(world, "behind"), "n1")
        await request(world, await pod(world, "elsewhere"), "n2")
        await asyncio.sleep(1)
        assert await world.placed("") == {"stuck": "", "behind": "", "elsewhere": "n2"}
        await asyncio.sleep(30)
        assert (await world.placed("behind"))["behind"] == "n1"
        server.answer("stuck")
        await asyncio.sleep(60)
        assert (await world.placed("stuck"))["stuck"] == "n1"


@virtual
async def test_who_waits_for_a_volume_is_in_nobodys_way() -> None:
    """With room for one binding at a time, a pod that came later is bound while the first waits."""
    async with stage((BINDER, BinderSettings(workers=1))) as world:
        await world.node("n1")
        await made_volume(world)
        await request(world, await pod(world, "later"))
        await asyncio.sleep(1)
        assert await world.placed("") == {"p": "", "later": "n1"}


@virtual
async def test_an_answer_that_got_lost_takes_nothing_back() -> None:
    """The pod may be bound: what it needs stays, and the next look finds that it is."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        await one_device(world)
        await asyncio.sleep(1)

        async def lose(sent: Request) -> None:
            if sent.path.endswith("/binding"):
                raise ConnectionLost("gone on the way back")

        world.transport.after = lose
        await tell_device(world)
        await asyncio.sleep(10)
        assert (await outcome(world))[0] == "Succeeded"
        bound = await world.client.get(Pod, ("default", "p"))
        assert (bound.spec.node_name, bound.metadata.labels["runai-gpu-group"]) == ("n1", "g1")
        maps = {config_map.name for config_map in (await world.client.list(ConfigMap, "default")).items}
        assert maps >= {"p-shared-gpu-0", "p-shared-gpu-0-evar"}


async def test_unused_queues_are_dropped() -> None:
    """Nodes come and go; what is remembered of them does not add up."""
    queues = NodeQueues(1)
    async with queues.turn("n1"):
        assert len(queues._locks) == 1
    assert len(queues._locks) == 0
