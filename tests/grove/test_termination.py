"""Upstream's gang termination suite: what stays below its minimum for terminationDelay is replaced as a whole."""

from __future__ import annotations

import pytest

from tests.grove.virtual import played

pytest.importorskip("spinney.embedded.cluster")

from spinney.api.core import Node, Pod
from spinney.api.meta import Json
from tests.grove.conftest import Play
from tests.grove.stage import Stage, sample

WL1_GT, WL2 = "e2e-yaml/workload1-gt", "e2e-yaml/workload2"


def with_delay(name: str, delay: str = "10s", **minimums: int) -> Json:
    """One of upstream's workloads with a short terminationDelay, and other minimums for some cliques."""
    (pcs,) = sample(name)
    pcs["spec"]["template"]["terminationDelay"] = delay
    for clique in pcs["spec"]["template"]["cliques"]:
        key = clique["name"].replace("-", "_")
        if key in minimums:
            clique["spec"]["minAvailable"] = minimums[key]
    return pcs


async def started(stage: Stage, *documents: Json) -> set[str]:
    """Run a workload of ten pods, and say who they are."""
    await stage.apply(*documents)
    await stage.runs(10)
    return await stage.uids()


async def kill(stage: Stage, *pods: Pod) -> None:
    """Close the nodes of some pods, then delete the pods: their successors find no place."""
    for pod in pods:
        await stage.client.patch(Node, pod.spec.node_name, {"spec": {"unschedulable": True}})
        await stage.client.delete(Pod, pod.key)


async def none_left(stage: Stage, before: set[str]) -> None:
    """Wait until every pod has made room for another."""

    async def replaced() -> bool:
        return not before & await stage.uids()

    await stage.until(replaced)


async def heal(stage: Stage) -> None:
    """Open all nodes: everything runs again."""
    await stage.cordon(0)
    await stage.runs(10)


async def lose_one(stage: Stage, clique: str) -> str:
    """Kill one pod of a clique, and say which it was."""
    (pod, *_) = await stage.pods(clique)
    await kill(stage, pod)
    return pod.uid


def test_gt1_a_lost_pod_replaces_the_whole_replica(both: Play) -> None:
    """GT1: one pod of a clique that needs all is missing for the delay: every pod of the replica is new."""

    async def scenario(stage: Stage) -> None:
        before = await started(stage, with_delay(WL1_GT, "3s"))
        await lose_one(stage, "workload1-gt-0-pc-a")
        await none_left(stage, before)
        await heal(stage)

    both(scenario, nodes=10)


@played(nodes=10)
async def test_gt2_a_scaling_group_that_needs_all_replicas_takes_the_set_replica_along(stage: Stage) -> None:
    """GT2: one pod of a group replica is missing, the group needs both: every pod of the replica is new."""
    before = await started(stage, *sample(WL1_GT))
    await lose_one(stage, "workload1-gt-0-sg-x-0-pc-c")
    await stage.settle(30)
    assert not before & await stage.uids()
    await heal(stage)


@played(nodes=10)
async def test_gt3_pods_beyond_the_minimum_may_be_lost(stage: Stage) -> None:
    """GT3: losing one of two pods with minimum one changes nothing; losing both replaces the replica."""
    before = await started(stage, with_delay(WL2))
    first, second = await stage.pods("workload2-0-pc-a")
    await kill(stage, first)
    await stage.settle(40)
    assert before - await stage.uids() == {first.uid}
    await kill(stage, second)
    await none_left(stage, before)
    await heal(stage)


@played(nodes=10)
async def test_gt4_one_group_replica_goes_alone_both_take_the_set_replica_along(stage: Stage) -> None:
    """GT4: a lost group replica is replaced alone while the group has its minimum; without it the whole replica is."""
    before = await started(stage, with_delay(WL2))
    await kill(stage, *await stage.pods("workload2-0-sg-x-1-pc-c"))
    await stage.settle(40)
    after = await stage.uids()
    kept = await stage.uids("workload2-0-pc-a") | await stage.uids("workload2-0-sg-x-0-pc-b")
    assert kept <= before
    assert not before & await stage.uids("workload2-0-sg-x-1-pc-b")
    await stage.cordon(10)
    await kill(stage, *await stage.pods("workload2-0-sg-x-0-pc-c"))
    await stage.settle(40)
    assert not after & before & await stage.uids()
    await heal(stage)


@played(nodes=10)
async def test_gt5_only_the_breached_group_replica_is_replaced(stage: Stage) -> None:
    """GT5: all pods of one group replica's clique are lost: only that replica's pods change."""
    before = await started(stage, with_delay(WL2, pc_c=3))
    await kill(stage, *await stage.pods("workload2-0-sg-x-1-pc-c"))
    await stage.settle(40)
    gone = before - await stage.uids()
    assert len(gone) == 4
    assert await stage.uids("workload2-0-sg-x-0-pc-c") <= before
    await heal(stage)


def test_gt6_a_pod_of_a_scaled_gang_is_just_recreated(both: Play) -> None:
    """GT6: a deleted pod of a scaled gang comes back, and nothing else changes."""

    async def scenario(stage: Stage) -> None:
        before = await started(stage, with_delay(WL2))
        (lost, *_) = await stage.pods("workload2-0-sg-x-1-pc-c")
        await stage.delete(Pod, lost.name)
        await stage.runs(10)
        await stage.settle(60)
        assert before - await stage.uids() == {lost.uid}

    both(scenario, nodes=10)


@played(nodes=10)
async def test_a_gang_that_was_never_placed_is_not_terminated(stage: Stage) -> None:
    """A set that never found room waits; it is not killed over and over."""
    await stage.cordon(1)
    await stage.apply(*sample(WL1_GT))
    await stage.settle(10)
    before = await stage.uids()
    await stage.settle(300)
    assert await stage.uids() == before


@played(nodes=10)
async def test_a_breach_is_borne_for_the_delay_and_no_longer(stage: Stage) -> None:
    """Before terminationDelay is over nothing but the lost pod is gone, after it everything is."""
    before = await started(stage, *sample(WL1_GT))
    lost = await lose_one(stage, "workload1-gt-0-pc-a")
    await stage.settle(9)
    assert before - await stage.uids() == {lost}
    await stage.settle(3)
    assert not before & await stage.uids()
    await heal(stage)


@played(nodes=10)
async def test_a_breach_that_heals_in_time_is_forgiven(stage: Stage) -> None:
    """A lost pod that comes back before the delay is over ends nothing."""
    before = await started(stage, *sample(WL1_GT))
    lost = await lose_one(stage, "workload1-gt-0-pc-a")
    await stage.settle(5)
    await heal(stage)
    await stage.settle(120)
    assert before - await stage.uids() == {lost}
    assert await stage.running() == 10
