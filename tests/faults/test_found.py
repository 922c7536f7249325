"""Crashes that the fault search has found to leave something behind."""

from __future__ import annotations

import asyncio
import gc

from spinney.api import labels, reasons
from spinney.api.core import Service
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.kai import PodGroup
from spinney.api.podgang import PodGang
from spinney.sim.faults.kinds import Kind
from spinney.sim.faults.network import Crash
from spinney.sim.faults.scenarios import NODES, SCENARIOS
from spinney.sim.faults.snapshot import CreatedPods
from spinney.sim.faults.steps import Step, change, cordon, create, in_a_row, lose, serving_set
from spinney.sim.faults.world import World, installation
from spinney.sim.loop import run_virtual
from tests.virtual_time import virtual


async def left(world: World) -> set[str]:
    """The set replicas of which objects are left."""
    names = set()
    for kind in (PodGang, PodClique, PodCliqueScalingGroup, PodGroup, Service):
        names |= {
            each.metadata.labels.get(labels.SET_REPLICA_INDEX, "")
            for each in (await world.client.list(kind, "default")).items
            if each.name != "kubernetes"
        }
    return names


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


def refuse(world: World, path: str, seconds: float, since: str = "") -> None:
    """Refuse all writes to a path for a while, since the first write that starts so."""
    network, loop = world.network, asyncio.get_running_loop()
    end = loop.time() + seconds

    def at_write(number: int) -> Kind | None:
        begun = loop.time() < end and any(write.startswith(since) for write in network.writes)
        return Kind.REFUSED if begun and network.writes[-1].endswith(path) else None

    network.armed, network.at_write = True, at_write


def to(image: str, replicas: int = 1) -> Step:
    """Update the set to another image."""
    spec = serving_set("default-scheduler", image, replicas)["spec"]
    return change(PodCliqueSet, "serve", {"spec": spec})


async def updated_with_crash(world: World, update: Step, kind: Kind, *texts: str) -> None:
    """Deploy the set with kube-scheduler, and update it with a crash at the first write that contains some texts."""
    network = world.network

    def at_write(number: int) -> Kind | None:
        return kind if not network.crashed_at and all(text in network.writes[-1] for text in texts) else None

    await create(PodCliqueSet, serving_set("default-scheduler"))(world)
    await world.settled()
    network.armed, network.at_write = True, at_write
    await update(world)
    await world.settled()
    assert network.crashed_at, network.writes


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


@virtual
async def test_an_eviction_whose_answer_was_lost_counted_as_refused() -> None:
    """The scheduler asks again, and two pods go, as with the answer; before, their room went to somebody else."""
    evicted: set[str] = set()
    scenario = SCENARIOS["reclaim"]
    async with installation(scenario.nodes, backends=()) as world:
        network = world.network

        def at_write(number: int) -> Kind | None:
            first = not network.crashed_at and network.writes[-1].endswith("/eviction")
            return Kind.ANSWER_LOST if first else None

        network.evicting = lambda namespace, name: evicted.add(name)
        for number, step in enumerate(scenario.steps[:3]):
            if number == 2:
                network.armed, network.at_write = True, at_write
            await step(world)
            await world.settled()
        assert network.crashed_at.startswith("scheduler: "), network.writes
    assert len(evicted) == 2


@virtual
async def test_a_clique_that_outlived_its_pods_got_new_ones() -> None:
    """The operator crashes after the first deletion in a scaling group that is updated: no pod is created twice."""
    async with installation(NODES, stand_in=True, backends=("default",)) as world:
        created = CreatedPods(world.cluster.server.store)
        await updated_with_crash(world, to("app:2"), Kind.CRASH_AFTER, "grove: DELETE", "/serve-0-decode-0-")
        assert created.counts["serve-0-decode-0-leader-"] == created.counts["serve-0-decode-0-worker-"] == 2


@virtual
async def test_an_update_that_ended_before_its_status_was_written_was_not_told() -> None:
    """The group's status cannot be written for a while: then it tells the whole update."""
    async with installation(NODES, stand_in=True, backends=("default",)) as world:
        await create(PodCliqueSet, serving_set("default-scheduler"))(world)
        await world.settled()
        refuse(world, "podcliquescalinggroups/serve-0-decode/status", seconds=30, since="grove: DELETE")
        await to("app:2")(world)
        await world.settled()
        (group,) = (await world.client.list(PodCliqueScalingGroup, "default")).items
        assert group.status.update_progress is not None
        assert group.status.update_progress.update_ended_at is not None
        assert reasons.UPDATE_IN_PROGRESS in [condition.type for condition in group.status.conditions]


@virtual
async def test_a_replica_that_came_during_an_update_was_told_to_be_updated() -> None:
    """The scheduler crashes as it binds the first pod of the new replica, which has the new revision only."""
    async with installation(NODES, stand_in=True, backends=("default",)) as world:
        await updated_with_crash(world, to("app:2", 2), Kind.CRASH_BEFORE, "scheduler: POST", "/pods/serve-1-")
        groups = {group.name: group for group in (await world.client.list(PodCliqueScalingGroup, "default")).items}
        assert groups["serve-0-decode"].status.update_progress is not None
        assert groups["serve-1-decode"].status.update_progress is None


@virtual
async def test_a_replica_that_came_before_its_update_was_told_was_told_to_be_updated() -> None:
    """The set's status cannot be written for a while: the new replica does not tell the revision of before."""
    async with installation(NODES, stand_in=True, backends=("default",)) as world:
        await create(PodCliqueSet, serving_set("default-scheduler"))(world)
        await world.settled()
        refuse(world, "podcliquesets/serve/status", seconds=20)
        await to("app:2", 2)(world)
        await world.settled()
        groups = {group.name: group for group in (await world.client.list(PodCliqueScalingGroup, "default")).items}
        assert groups["serve-0-decode"].status.update_progress is not None
        assert groups["serve-1-decode"].status.update_progress is None


@virtual
async def test_a_clique_told_the_revision_of_the_update_before() -> None:
    """The set's status cannot be written while one update overtakes another: in the end cliques tell the second."""
    async with installation(NODES, stand_in=True, backends=("default",)) as world:
        await create(PodCliqueSet, serving_set("default-scheduler"))(world)
        await world.settled()
        await in_a_row(0.4, to("app:2"))(world)
        refuse(world, "podcliquesets/serve/status", seconds=2)
        await to("app:3")(world)
        await world.settled()
        pcs = await world.client.get(PodCliqueSet, ("default", "serve"))
        clique = await world.client.get(PodClique, ("default", "serve-0-router"))
        assert clique.status.update_progress is not None
        revision = clique.status.update_progress.pod_clique_set_generation_hash
        assert revision == pcs.status.current_generation_hash


@virtual
async def test_a_refused_note_on_a_group_ended_in_an_unhandled_error() -> None:
    """The scheduler may not note that a gang is stale: it says so, and evicts the gang all the same."""
    problems: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context["message"]))
    scenario = SCENARIOS["stale-gang"]
    async with installation(scenario.nodes, backends=()) as world:
        network, refused = world.network, list[str]()

        def at_write(number: int) -> Kind | None:
            if "scheduler: PATCH" not in network.writes[-1] or not network.writes[-1].split("/")[-1].startswith("pg-"):
                return None
            refused.append(network.writes[-1])
            return Kind.REFUSED

        for step in scenario.steps[:2]:
            await step(world)
            network.armed, network.at_write = True, at_write
            await asyncio.sleep(60)
        gc.collect()
        assert refused
    assert not [problem for problem in problems if "never retrieved" in problem]
