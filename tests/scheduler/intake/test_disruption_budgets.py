"""Disruption budgets: victims are chosen so that no budget is overspent, pod by pod."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from spinney.api.core import Pod
from spinney.api.meta import convert
from spinney.api.policy import PodDisruptionBudget
from spinney.api.scheduling import PriorityClass
from spinney.scheduler.intake.disruption_budgets import budgets_of_pod, evictions_allowed
from tests import make
from tests.scheduler.clusters import Cluster, statuses
from tests.scheduler.service.parts import PARTS, WITH_KUBE_SCHEDULER
from tests.services.stage import stage
from tests.virtual_time import virtual


def under(cluster: Cluster, budget: str, *keys: str) -> Cluster:
    """With tasks under a budget."""
    for key in keys:
        spec = cluster.state.tasks[key].spec
        cluster.state.set_task(replace(spec, budgets=(*spec.budgets, budget)))
    return cluster


def lesser(count: int, nodes: int = 1) -> Cluster:
    """Jobs of one GPU each, of rising priority, that fill some nodes."""
    cluster = Cluster(*[count // nodes] * nodes).queue("q", 100)
    for number in range(count):
        cluster.job(f"r{number}", "q", [f"n{number % nodes}"], priority=10 + number)
    return cluster


def evicted(cluster: Cluster) -> list[str]:
    return sorted(decision.task for decision in cluster.plan().decisions if decision.kind == "evict")


def test_a_victim_under_a_spent_budget_is_passed_over() -> None:
    """The next in line goes instead, though it is more urgent."""
    cluster = under(lesser(3), "b", "r0-0").job("j", "q", [""], gpus=1, priority=90)
    assert evicted(cluster) == ["r1-0"]


def test_a_budget_counts_all_victims_of_a_scenario() -> None:
    """Of three tasks under a budget that allows one, only one goes; others fill the gap."""
    cluster = under(lesser(6), "b", "r0-0", "r1-0", "r2-0").job("j", "q", [""], gpus=3, priority=90)
    cluster.state.set_budget("b", 1)
    assert evicted(cluster) == ["r0-0", "r3-0", "r4-0"]
    cluster.state.set_budget("b", 2)
    assert evicted(cluster) == ["r0-0", "r1-0", "r3-0"]


def test_a_budget_counts_over_the_whole_cycle() -> None:
    """What one job's victims spent is not there for the next."""
    cluster = under(lesser(4), "b", *(f"r{number}-0" for number in range(4)))
    cluster.state.set_budget("b", 1)
    cluster.job("j", "q", [""], priority=90).job("k", "q", [""], priority=90)
    assert evicted(cluster) == ["r0-0"]


def test_the_budget_is_spent_where_it_helps() -> None:
    """The first in line is on a node where it would not be enough; the budget is kept for the node where it is."""
    cluster = Cluster(2, 2).queue("q", 100)
    cluster.job("low", "q", ["n0"], priority=10).job("fixed", "q", ["n0"], priority=200, preemptible=False)
    cluster.job("higher", "q", ["n1"], gpus=2, priority=20)
    under(cluster, "b", "low-0", "higher-0").state.set_budget("b", 1)
    assert evicted(cluster.job("j", "q", [""], gpus=2, priority=90)) == ["higher-0"]


def test_a_gang_goes_whole_or_not_at_all() -> None:
    """A budget that allows two of three tasks keeps a gang that needs all; an elastic one gives up two."""
    for minimum, gone in ((3, []), (1, ["r-1", "r-2"])):
        cluster = Cluster(3).queue("q", 100).job("r", "q", ["n0"] * 3, priority=10, minimum=minimum)
        under(cluster, "b", "r-0", "r-1", "r-2").state.set_budget("b", 2)
        assert evicted(cluster.job("j", "q", [""], gpus=2, priority=90)) == gone


def test_spare_tasks_that_are_protected_stay() -> None:
    """An elastic gang gives up the tasks to spare that are under no budget."""
    cluster = Cluster(3).queue("q", 100).job("r", "q", ["n0"] * 3, priority=10, minimum=1)
    under(cluster, "b", "r-2").job("j", "q", [""], priority=90)
    assert evicted(cluster) == ["r-1"]


def test_a_task_under_two_budgets_is_never_a_victim() -> None:
    """Kubernetes refuses such evictions, whatever the budgets allow."""
    cluster = under(under(lesser(2), "a", "r0-0"), "b", "r0-0")
    cluster.state.set_budget("a", 9)
    cluster.state.set_budget("b", 9)
    assert evicted(cluster.job("j", "q", [""], priority=90)) == ["r1-0"]


def test_stale_gangs_wait_for_their_budget() -> None:
    """A gang below its minimum is not torn down further than a budget allows."""
    cluster = Cluster(4).queue("q", 100).job("j", "q", ["n0", "n0", ""], minimum=3, gpus=2)
    under(cluster, "b", "j-0", "j-1").state.set_budget("b", 1)
    assert not cluster.plan("stalegangeviction").decisions
    cluster.state.set_budget("b", 2)
    assert statuses(cluster.plan("stalegangeviction")) == {"j-0": "Releasing", "j-1": "Releasing"}


@given(some.lists(some.integers(0, 2), min_size=8, max_size=8), some.lists(some.integers(0, 3), min_size=2, max_size=2))
def test_no_plan_overspends_a_budget(covered: list[int], allowed: list[int]) -> None:
    """Whatever is under which budget, and whoever wants room."""
    cluster = lesser(8, nodes=2)
    for number, budget in enumerate(covered):
        if budget:
            under(cluster, f"b{budget - 1}", f"r{number}-0")
    for number, count in enumerate(allowed):
        cluster.state.set_budget(f"b{number}", count)
    cluster.job("j", "q", [""], gpus=3, priority=90).job("k", "q", ["", ""], gpus=2, priority=80)
    gone = Counter(cluster.state.tasks[key].spec.budgets for key in evicted(cluster))
    assert all(gone[f"b{number}",] <= count for number, count in enumerate(allowed))
    assert all(budget.spent == 0 for budget in cluster.state.budgets.values())


def budget(name: str, allowed: int = 1, **spec: object) -> PodDisruptionBudget:
    status = {"disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 3, "observedGeneration": 1}
    metadata = {"name": name, "namespace": "default", "generation": 1}
    body = {"selector": {"matchLabels": {"app": "a"}}, **spec}
    return convert(PodDisruptionBudget, {"metadata": metadata, "spec": body, "status": status})


def pod(ready: str = "True", phase: str = "Running", app: str = "a") -> Pod:
    conditions = [{"type": "Ready", "status": ready}]
    return make.pod("p").label("app", app).status(phase=phase, conditions=conditions).typed(Pod)


@pytest.mark.parametrize(
    ("evicted", "over", "wanted"),
    [
        (pod(), [budget("b")], ("default/b",)),
        (pod(app="other"), [budget("b")], ()),
        (pod(phase="Pending"), [budget("b")], ()),
        (pod(), [budget("b"), budget("c")], ("default/b", "default/c")),
        (pod(ready="False"), [budget("b")], ("default/b",)),
        (pod(ready="False"), [budget("b", unhealthyPodEvictionPolicy="AlwaysAllow")], ()),
    ],
    ids=["covered", "other labels", "not running yet", "two budgets", "unready, too few healthy", "unready may go"],
)
def test_which_budgets_an_eviction_counts_against(
    evicted: Pod, over: list[PodDisruptionBudget], wanted: tuple[str, ...]
) -> None:
    """As the eviction API decides."""
    assert budgets_of_pod(evicted, over) == wanted


def test_a_budget_that_was_changed_allows_nothing_until_it_is_looked_at() -> None:
    """The numbers in its status are of an older version."""
    changed = convert(
        PodDisruptionBudget, {"metadata": {"name": "b", "generation": 2}, "status": {"disruptionsAllowed": 3}}
    )
    assert (evictions_allowed(budget("b", 3)), evictions_allowed(changed)) == (3, 0)


@virtual
async def test_budgets_of_the_cluster_are_kept() -> None:
    """The service takes as many victims as the budget's status says, and more once it says so."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        client = world.client
        for name, value in (("low", 10), ("high", 90)):
            await client.create(PriorityClass, {"metadata": {"name": name}, "value": value})
        await world.node("n1", gpus=2)
        for name in ("a", "b"):
            await world.gang(name, members=1, gpus=1, priorityClassName="low")
        await asyncio.sleep(5)
        for name in ("a-0", "b-0"):
            await client.patch(Pod, ("default", name), {"metadata": {"labels": {"app": "a"}}})
            running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await client.patch(Pod, ("default", name), {"status": running}, subresource="status")
        spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "a"}}}
        await client.create(PodDisruptionBudget, {"metadata": {"name": "b"}, "spec": spec}, "default")
        status = {"observedGeneration": 1, "expectedPods": 2, "currentHealthy": 2, "desiredHealthy": 2}
        for allowed, left in ((0, 2), (1, 1)):
            body = {"status": {**status, "disruptionsAllowed": allowed}}
            await client.patch(PodDisruptionBudget, ("default", "b"), body, subresource="status")
            if not allowed:
                await world.gang("urgent", members=1, gpus=2, priorityClassName="high")
                await world.gang("small", members=1, gpus=1, priorityClassName="high")
            await asyncio.sleep(10)
            pods = (await client.list(Pod, "default")).items
            rest = [pod for pod in pods if pod.name in ("a-0", "b-0")]
            assert sum(pod.metadata.deletion_timestamp is None for pod in rest) == left
