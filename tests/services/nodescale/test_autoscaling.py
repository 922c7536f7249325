"""What a cluster autoscaler sees: it reads pods that a scheduler gave up on, and adds the nodes these would fit on."""

from __future__ import annotations

import asyncio

from spinney.api import labels
from spinney.api.conditions import find
from spinney.api.core import Namespace, Node, Pod, ServiceAccount
from spinney.api.kai import PodGroup
from spinney.api.requests import pod_requests
from spinney.api.schedulerfile import SchedulerFile
from spinney.scheduler.service.component import COMPONENT as SCHEDULER
from spinney.services.binder.component import COMPONENT as BINDER
from spinney.services.nodescale.controller import COMPONENT as ADJUSTER
from tests import make
from tests.services.binder.binding import tell_device, with_reservations
from tests.services.stage import Stage, stage
from tests.virtual_time import virtual

PARTS = ((SCHEDULER, SchedulerFile()), (BINDER, None), (ADJUSTER, None))
SCALING = "kai-scale-adjust"
SIZE = 8


class Autoscaler:
    """Knows pods, whole resources and nodes; nothing of gangs, queues or shared GPUs."""

    def __init__(self, world: Stage) -> None:
        self._world = world
        self._made = 0

    async def missing(self) -> int:
        """How many more nodes of eight GPUs the pods that found no place would need."""
        pods = (await self._world.client.list(Pod)).items
        nodes = (await self._world.client.list(Node)).items
        free = {node.name: SIZE for node in nodes}
        for pod in pods:
            if pod.spec.node_name and pod.status.phase != "Succeeded":
                free[pod.spec.node_name] -= _gpus(pod)
        room = list(free.values())
        for wanted in sorted((_gpus(pod) for pod in pods if _gave_up(pod)), reverse=True):
            fits = next((index for index, left in enumerate(room) if left >= wanted), None)
            if fits is None:
                room.append(SIZE)
                fits = len(room) - 1
            room[fits] -= wanted
        return len(room) - len(nodes)

    async def act(self) -> int:
        """Add them."""
        missing = await self.missing()
        for _ in range(missing):
            self._made += 1
            await self._world.node(f"new-{self._made}", gpus=SIZE)
        return missing


def _gave_up(pod: Pod) -> bool:
    scheduled = find(pod.status.conditions, "PodScheduled")
    given_up = scheduled is not None and (scheduled.status, scheduled.reason) == ("False", "Unschedulable")
    return not pod.spec.node_name and given_up


def _gpus(pod: Pod) -> int:
    return pod_requests(pod.spec).get(labels.GPU_RESOURCE, 0) // 1000


async def stand_ins(world: Stage) -> list[Pod]:
    """The pods that stand for others."""
    return (await world.client.list(Pod, SCALING)).items


async def with_scaling(world: Stage) -> None:
    """The namespace of stand-ins."""
    await world.client.create(Namespace, {"metadata": {"name": SCALING}})
    await world.client.create(ServiceAccount, {"metadata": {"name": SCALING}}, SCALING)


@virtual
async def test_a_gang_asks_for_what_it_lacks_by_its_own_pods() -> None:
    """Four nodes' worth with one node there: three are added, all of it starts, and nothing more is asked for."""
    async with stage(*PARTS) as world:
        scaler = Autoscaler(world)
        await world.node("n1", gpus=SIZE)
        await world.gang("g", members=4, gpus=SIZE)
        await asyncio.sleep(5)
        assert set((await world.placed("g")).values()) == {""}, "all or nothing"
        assert await scaler.act() == 3
        await asyncio.sleep(10)
        assert len(set((await world.placed("g")).values())) == 4
        assert await scaler.missing() == 0


@virtual
async def test_nothing_is_bought_for_a_gang_that_is_not_complete() -> None:
    """Its pods wait for each other, not for nodes."""
    async with stage(*PARTS) as world:
        await world.node("n1", gpus=SIZE)
        await world.gang("g", members=2, gpus=SIZE, minimum=3)
        await asyncio.sleep(5)
        assert await Autoscaler(world).missing() == 0


async def shares(world: Stage, name: str, fraction: str) -> None:
    """A pod that asks for a part of a GPU, in a group of its own."""
    spec = {"minMember": 1, "queue": "q"}
    await world.client.create(PodGroup, {"metadata": {"name": name}, "spec": spec}, "default")
    built = make.pod(name).scheduler(labels.KAI_SCHEDULER).annotate(labels.POD_GROUP, name)
    built.annotate(labels.GPU_FRACTION, fraction).annotate(labels.SHARED_GPU_CONFIGMAP, f"{name}-shared-gpu")
    await world.client.create(Pod, built.build(), "default")


@virtual
async def test_parts_of_gpus_are_asked_for_by_stand_ins() -> None:
    """Three halves are two GPUs, on one node; once the pods have their places the stand-ins are gone."""
    async with stage(*PARTS) as world:
        await with_scaling(world)
        await with_reservations(world)
        scaler = Autoscaler(world)
        for name in ("a", "b", "c"):
            await shares(world, name, "0.5")
        await asyncio.sleep(5)
        assert [_gpus(pod) for pod in await stand_ins(world)] == [1, 1]
        assert await scaler.act() == 1
        await asyncio.sleep(5)
        await tell_device(world)
        await asyncio.sleep(5)
        assert set((await world.placed("")).values()) == {"new-1"}
        assert await stand_ins(world) == []
        assert await scaler.missing() == 0


@virtual
async def test_a_stand_in_makes_room_once_it_has_a_node() -> None:
    """Whoever places it, its pod needs that very GPU."""
    async with stage(*PARTS) as world:
        await with_scaling(world)
        await shares(world, "a", "0.5")
        await asyncio.sleep(5)
        (stand_in,) = await stand_ins(world)
        await world.node("new", gpus=SIZE)
        target = {"metadata": {"name": stand_in.name}, "target": {"kind": "Node", "name": "new"}}
        await world.client.call("POST", f"/api/v1/namespaces/{SCALING}/pods/{stand_in.name}/binding", body=target)
        await asyncio.sleep(1)
        assert [pod.metadata.deletion_timestamp is None for pod in await stand_ins(world)] == [False]


@virtual
async def test_a_stand_in_goes_with_its_pod_and_comes_back_after_a_pause() -> None:
    """A node that is on its way would be bought twice: for a minute nobody new stands in."""
    async with stage(*PARTS) as world:
        await with_scaling(world)
        await shares(world, "a", "0.5")
        await asyncio.sleep(5)
        assert len(await stand_ins(world)) == 1
        await world.client.delete(Pod, ("default", "a"), grace_seconds=0)
        await asyncio.sleep(5)
        assert await stand_ins(world) == []
        await shares(world, "b", "0.5")
        await asyncio.sleep(30)
        assert await stand_ins(world) == []
        await asyncio.sleep(30)
        assert [pod.metadata.labels["shared-gpu-pod-name"] for pod in await stand_ins(world)] == ["b"]


@virtual
async def test_a_stand_in_whose_maker_died_was_never_seen_by_autoscalers() -> None:
    """It existed, and nobody had called it unschedulable: whoever comes next does."""
    async with stage(*PARTS) as world:
        await with_scaling(world)
        await shares(world, "a", "0.5")
        await asyncio.sleep(5)
        (stand_in,) = await stand_ins(world)
        await world.client.patch(Pod, stand_in.key, {"status": {"conditions": None}}, subresource="status")
        await asyncio.sleep(5)
        assert [_gave_up(pod) for pod in await stand_ins(world)] == [True]
