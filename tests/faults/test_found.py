"""Crashes that the fault search has found to leave something behind."""

from __future__ import annotations

import asyncio

from spinney.api import labels, reasons
from spinney.api.core import Service
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.kai import PodGroup
from spinney.api.podgang import PodGang
from spinney.sim.faults.network import Crash
from spinney.sim.faults.scenarios import NODES, SCENARIOS
from spinney.sim.faults.steps import Step, change, cordon, create, lose, serving_set
from spinney.sim.faults.world import World, installation
from spinney.sim.loop import run_virtual
from tests.virtual_time import virtual


async def left(world: World) -> set[str]:
    """The set replicas of which objects are left."""
    found = set()
    for kind in (PodGang, PodClique, PodCliqueScalingGroup, PodGroup, Service):
        found |= {
            each.metadata.labels.get(labels.SET_REPLICA_INDEX, "")
            for each in (await world.client.list(kind, "default")).items
            if each.name != "kubernetes"
        }
    return found


def crashed(step: Step, writes: int, *, replicas: int) -> set[str]:
    """The set replicas that are left when the operator crashes after so many writes of a step."""

    async def main() -> set[str]:
        async with installation(NODES) as world:
            await create(PodCliqueSet, serving_set(labels.KAI_SCHEDULER, replicas=replicas))(world)
            await world.settled()
            world.network.armed = True
            world.network.crash = Crash(writes, after=True)
            await step(world)
            await world.settled()
            assert world.network.crashed_at.startswith("grove: "), world.network.writes
            return await left(world)

    return run_virtual(main())


def test_a_removed_replica_was_left_after_its_pods_were_deleted() -> None:
    """The operator crashes after deleting the four pods of a replica; then gang, cliques and service go as well."""
    assert crashed(change(PodCliqueSet, "serve", {"spec": {"replicas": 1}}), 4, replicas=2) == {"0"}


@virtual
async def test_a_gang_termination_was_forgotten_after_a_crash() -> None:
    """The operator crashes after recording the termination; then it still replaces every clique."""
    async with installation(NODES) as world:
        await create(PodCliqueSet, serving_set(labels.KAI_SCHEDULER))(world)
        await world.settled()
        before = {each.name: each.uid for each in (await world.client.list(PodClique, "default")).items}
        world.network.armed = True
        world.network.crash = Crash(1, after=True, containing=reasons.GANG_TERMINATION_IN_PROGRESS.encode())
        await cordon(closed=True)(world)
        await lose("serve-0-decode-0-worker")(world)
        await asyncio.sleep(40)
        assert world.network.crashed_at.startswith("grove: "), world.network.writes
        after = {each.name: each.uid for each in (await world.client.list(PodClique, "default")).items}
        assert before.keys() == after.keys()
        assert not set(before.values()) & set(after.values())


@virtual
async def test_a_scheduler_that_crashed_between_two_evictions_took_a_further_victim() -> None:
    """The next scheduler goes on with the decision: two pods go, as without a crash."""
    evicted: list[str] = []
    scenario = SCENARIOS["reclaim"]
    async with installation(scenario.nodes, backends=()) as world:
        world.network.evicting = lambda namespace, name: evicted.append(name)
        for number, step in enumerate(scenario.steps[:3]):
            world.network.armed = number == 2
            world.network.crash = Crash(1, after=True, containing=b'"Eviction"')
            await step(world)
            await world.settled()
        assert world.network.crashed_at.startswith("scheduler: "), world.network.writes
    assert len(evicted) == 2
