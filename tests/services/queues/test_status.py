"""The status of Queues."""

from __future__ import annotations

import asyncio

from spinney.api import labels
from spinney.api.conditions import find
from spinney.api.kai import PodGroup, Queue
from spinney.services.queues.controller import COMPONENT as QUEUES
from tests.services.stage import Stage, stage
from tests.virtual_time import virtual

GPU = labels.GPU_RESOURCE


async def reported(world: Stage, name: str, queue: str, gpus: str) -> None:
    """A group of a queue that says what it holds."""
    await world.client.create(PodGroup, {"metadata": {"name": name}, "spec": {"queue": queue}}, "default")
    held = {"resourcesStatus": {"requested": {GPU: gpus}, "allocated": {GPU: gpus}}}
    await world.client.patch(PodGroup, ("default", name), {"status": held}, subresource="status")


async def holds(world: Stage) -> dict[str, str]:
    """What each queue holds."""
    await asyncio.sleep(10)
    return {queue.name: queue.status.allocated.get(GPU, "0") for queue in (await world.client.list(Queue)).items}


@virtual
async def test_usage_goes_up_the_tree() -> None:
    """A queue holds what everything below it holds, also when groups or queues move and go."""
    async with stage((QUEUES, None)) as world:
        await world.queue("left", "q")
        await world.queue("right", "q")
        await world.queue("leaf", "left")
        await reported(world, "a", "leaf", "2")
        await reported(world, "b", "right", "3")
        assert await holds(world) == {"q": "5", "left": "2", "leaf": "2", "right": "3"}
        await world.client.patch(PodGroup, ("default", "a"), {"spec": {"queue": "right"}})
        assert await holds(world) == {"q": "5", "left": "0", "leaf": "0", "right": "5"}
        await world.client.delete(PodGroup, ("default", "b"))
        assert await holds(world) == {"q": "2", "left": "0", "leaf": "0", "right": "2"}
        await world.client.patch(Queue, "right", {"spec": {"parentQueue": "left"}})
        assert await holds(world) == {"q": "2", "left": "2", "leaf": "0", "right": "2"}
        assert (await world.client.get(Queue, "left")).status.child_queues == ("leaf", "right")


@virtual
async def test_queues_say_when_they_hold_too_much_or_hang_in_the_air() -> None:
    """`OverQuota` above the GPU quota, `Orphan` while the parent does not exist."""
    async with stage((QUEUES, None)) as world:
        await world.queue("lost", "nowhere", quota=1)
        await reported(world, "a", "lost", "2")
        await asyncio.sleep(10)
        assert await said(world, "lost") == {"Orphan": "True", "OverQuota": "True"}
        await world.queue("nowhere")
        await world.client.patch(Queue, "lost", {"spec": {"resources": {"gpu": {"quota": 2}}}})
        await asyncio.sleep(10)
        assert await said(world, "lost") == {"Orphan": "False", "OverQuota": "False"}


@virtual
async def test_what_a_queue_holds_too_much_of_stays_true() -> None:
    """The message counts along, in the queue's units; the time stays that of the moment it went over."""
    async with stage((QUEUES, None)) as world:
        seen = []
        for name in ("a", "b"):
            await reported(world, name, "q", "1500m")
            await asyncio.sleep(10)
            seen.append(find((await world.client.get(Queue, "q")).status.conditions, "OverQuota"))
        assert [condition.message for condition in seen if condition] == [
            "1.5 GPUs held, quota 0",
            "3 GPUs held, quota 0",
        ]
        assert len({condition.last_transition_time for condition in seen if condition}) == 1


async def said(world: Stage, name: str) -> dict[str, str]:
    """A queue's conditions."""
    conditions = (await world.client.get(Queue, name)).status.conditions
    by_kind = {kind: find(conditions, kind) for kind in ("Orphan", "OverQuota")}
    return {kind: condition.status for kind, condition in by_kind.items() if condition is not None}
