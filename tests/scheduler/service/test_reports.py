"""What is told about gangs that wait is true: after a crash, behind a slow wire, of pods that come later."""

from __future__ import annotations

import asyncio

from spinney.api.core import Pod
from spinney.api.kai import PodGroup
from spinney.api.schedulerfile import SchedulerFile
from spinney.kube.client.transport import Request
from spinney.scheduler.service.component import COMPONENT as SCHEDULER
from spinney.services.binder.component import COMPONENT as BINDER
from tests import make
from tests.services.stage import Stage, stage
from tests.virtual_time import virtual

PARTS = ((SCHEDULER, SchedulerFile()), (BINDER, None))


async def said(world: Stage) -> list[str]:
    """The types of the scheduling conditions of group g."""
    group = await world.client.get(PodGroup, ("default", "g"))
    return [condition.type for condition in group.status.scheduling_conditions]


@virtual
async def test_a_gang_placed_after_a_restart_is_not_called_unschedulable_for_ever() -> None:
    """The new scheduler takes back what its predecessor said, though it never said it itself."""
    async with stage(*PARTS) as world:
        await world.node("n1", gpus=2)
        await world.gang("g", members=2, gpus=2)
        await asyncio.sleep(5)
        assert await said(world) == ["UnschedulableOnNodePool"]
        await world.stop()
        await world.node("n2", gpus=2)
        await world.start()
        await asyncio.sleep(5)
        assert set((await world.placed("g")).values()) == {"n1", "n2"}
        assert await said(world) == []


@virtual
async def test_a_word_is_taken_back_before_it_was_heard() -> None:
    """The gang is placed while the watch has not shown the condition yet: it goes all the same."""

    async def late(request: Request) -> None:
        if request.path.endswith("/podgroups"):
            await asyncio.sleep(20)

    async with stage(*PARTS) as world:
        await world.node("n1", gpus=2)
        await world.gang("g", members=2, gpus=2)
        await asyncio.sleep(0.01)
        world.transport.events = late
        await asyncio.sleep(3)
        assert await said(world) == ["UnschedulableOnNodePool"]
        await world.node("n2", gpus=2)
        await asyncio.sleep(60)
        assert await said(world) == []


@virtual
async def test_a_pod_that_joins_a_waiting_gang_is_told_why_it_waits() -> None:
    """Autoscalers look at each pod: one that takes the place of another waits for the same reason, and says so."""
    async with stage(*PARTS) as world:
        await world.node("n1", gpus=4)
        await world.gang("g", members=3, gpus=2, minimum=2)
        await asyncio.sleep(5)
        (waiting,) = [name for name, node in (await world.placed("g")).items() if not node]
        await world.client.delete(Pod, ("default", waiting), grace_seconds=0)
        heir = make.pod("g-heir").scheduler("kai-scheduler").gpus(2).annotate("pod-group-name", "g")
        await world.client.create(Pod, heir.build(), "default")
        await asyncio.sleep(5)
        conditions = (await world.client.get(Pod, ("default", "g-heir"))).status.conditions
        assert [(each.type, each.reason) for each in conditions] == [("PodScheduled", "Unschedulable")]
