"""What a waiting gang is told to change helps: done step by step, it makes the gang run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from spinney.api.affinity import Taint
from spinney.api.missing import Lack, Missing
from spinney.scheduler.config import Config
from spinney.scheduler.state.problems import NoDomain, NoQueue, NoRoom, OverLimit, OverQuota, Problem, UnknownTopology
from spinney.scheduler.state.specs import Constraint, Constraints, NodeSpec, TopologySpec
from spinney.scheduler.why.advice import advice
from tests.scheduler.clusters import Cluster

ALLOCATE = Config(actions=("allocate",), staleness_grace=-1)
LEVELS = (("zone", ""), ("rack", ""))
RESOURCES = ("cpu", "memory", "gpu")
INSIDE = (None, None, Constraint("tree", "rack"), Constraint("tree", "zone"), Constraint("tree", preferred="rack"))


@some.composite
def waiting(draw: some.DrawFn) -> Cluster:
    """A few nodes in two racks, two queues with quotas and limits below one, and a gang that may have to wait."""
    cluster, left = Cluster(), {}
    for number in range(draw(some.integers(1, 4))):
        name, gpus = f"n{number}", draw(some.sampled_from([1, 2, 4]))
        cluster.node(name, gpus, zone="z", rack=draw(some.sampled_from("ab")))
        left[name] = gpus
    if draw(some.booleans()):
        cluster.state.set_topology(TopologySpec("tree", LEVELS))
    cluster.queue("above", draw(some.sampled_from([-1, 4])), draw(some.sampled_from([-1, 6])))
    for name in ("a", "b"):
        quota = draw(some.integers(0, 6))
        cluster.queue(name, quota, draw(some.sampled_from([-1, quota, quota + 2])), parent="above")
    for number in range(draw(some.integers(0, 4))):
        node, preemptible = draw(some.sampled_from(sorted(left))), draw(some.booleans())
        if left[node]:
            left[node] -= 1
            cluster.job(f"r{number}", draw(some.sampled_from("ab")), [node], preemptible=preemptible)
    queue, inside = draw(some.sampled_from(["a", "b", "missing"])), draw(some.sampled_from(INSIDE))
    tasks, gpus = [""] * draw(some.integers(1, 4)), draw(some.sampled_from([1, 2, 4]))
    return cluster.job("gang", queue, tasks, gpus=gpus, preemptible=draw(some.booleans()), inside=inside)


def follow(cluster: Cluster, problem: Problem, step: int) -> None:
    """Do what the advice says, no more."""
    state, gpus = cluster.state, cluster.state.tasks["gang-0"].cls.gpus
    match problem:
        case OverLimit(queue, resource) | OverQuota(queue, resource):
            spec, name = state.queue_specs[queue], RESOURCES[resource]
            share, bound = getattr(spec, name), "limit" if isinstance(problem, OverLimit) else "quota"
            raised = replace(share, **{bound: getattr(share, bound) + problem.short})
            state.set_queue(replace(spec, **{name: raised}))
        case NoQueue(queue):
            cluster.queue(queue)
        case UnknownTopology(topology):
            state.set_topology(TopologySpec(topology, LEVELS))
        case NoRoom(found=found, required=required, gang=gang):
            for number in range(max(required - found, 1) if gang else 1):
                cluster.node(f"more{step}-{number}", int(gpus), zone="z", rack="a")
        case NoDomain(tasks=tasks, best=best, domain=domain):
            labels = dict(zip(("zone", "rack"), domain.split("."), strict=False)) if "z" in domain else {}
            for number in range(tasks - best):
                cluster.node(f"more{step}-{number}", int(gpus), **{"zone": "z", "rack": "a"} | labels)
        case _:
            raise AssertionError(f"no advice for {problem}")


def blocker(cluster: Cluster) -> Problem | None:
    """What keeps the gang waiting before all else; None if it is placed."""
    done = cluster.plan(config=ALLOCATE)
    return None if any(decision.job == "gang" for decision in done.decisions) else done.problems["gang"][0]


@given(waiting())
def test_advice_that_is_followed_makes_the_gang_run(cluster: Cluster) -> None:
    """Each blocker is gone once its advice is followed, and after the last one the gang is placed."""
    seen: list[Problem] = []
    while problem := blocker(cluster):
        assert problem not in seen, f"{advice(problem)} did not help"
        assert advice(problem)
        seen.append(problem)
        follow(cluster, problem, len(seen))
        assert len(seen) < 10


@given(waiting())
def test_a_level_is_to_be_relaxed_only_where_that_helps(cluster: Cluster) -> None:
    """A gang that is told to prefer a level instead of requiring it has no problem with topology then."""
    spec = cluster.state.jobs["gang"].spec
    problem = blocker(cluster)
    if not isinstance(problem, NoDomain) or "as preferred instead of required" not in advice(problem):
        return
    relaxed = Constraint("tree", preferred=problem.constraint.required)
    cluster.state.set_job(replace(spec, tree=replace(spec.tree, constraint=relaxed)))
    assert not any(isinstance(each, NoDomain) for each in cluster.plan(config=ALLOCATE).problems.get("gang", ()))


@pytest.mark.parametrize(
    ("rules", "beginning"),
    [
        (Constraints(impossible=Missing(Lack.VOLUME_CLAIM, "data")), "create persistentvolumeclaim data"),
        (Constraints(impossible=Missing(Lack.CONFIG_MAP, "settings")), "create configmap settings"),
        (
            Constraints(node_selector=(("disk", "fast"),)),
            "relax the pod's node selector or affinity, or label the node",
        ),
        (Constraints(volume_nodes=frozenset()), "free or add room where the pod's volumes can be reached"),
        (Constraints(), "tolerate the taint kept, or take it off the node that has room; else free or add room for 1"),
    ],
)
def test_nodes_with_room_that_refuse_are_told_of_first(rules: Constraints, beginning: str) -> None:
    """More room is no use to a pod that waits for something else; what is missing altogether hides everything."""
    cluster = Cluster(0).queue("q", 100).job("j", "q", [""])
    amounts = {"cpu": 64_000.0, "memory": 1e12, "gpu": 4.0, "pods": 110.0}
    taints = (Taint(key="kept", effect="NoSchedule"),) if rules == Constraints() else ()
    cluster.state.set_node(NodeSpec("n1", amounts, taints=taints))
    cluster.state.set_task(replace(cluster.state.tasks["j-0"].spec, constraints=rules))
    (problem,) = cluster.plan(config=ALLOCATE).problems["j"]
    assert advice(problem).startswith(beginning)


def test_a_gang_is_told_why_nobody_makes_room() -> None:
    """How many pods rank below it and what keeps them, and what its queue may take from others; nobody is named."""
    cluster = Cluster(4).queue("mine", 0).queue("theirs", 0)
    cluster.job("a", "mine", ["n0"], priority=10).job("b", "mine", ["n0"], priority=10, preemptible=False)
    cluster.job("c", "theirs", ["n0"]).job("d", "theirs", ["n0"])
    cluster.state.set_budget("ns/all", 0)
    cluster.state.set_task(replace(cluster.state.tasks["a-0"].spec, budgets=("ns/all",)))
    text = cluster.job("j", "mine", [""], priority=90).explained("j")
    assert "2 of 2 pods that run in its queue have a lower priority; of these 1 may not be evicted and 1 are" in text
    assert "Its queue would hold 3 GPUs, more than its fair share of 2: it takes nothing from other queues" in text
    assert "theirs" not in text
    cluster.state.set_job(replace(cluster.state.jobs["j"].spec, preempts=False))
    assert "Its priority class pushes nobody out" in cluster.explained("j")


def test_a_gang_within_its_share_hears_that_others_are_too() -> None:
    """Nothing is beyond anybody's share where one gang is simply too large for what its queue is owed."""
    cluster = Cluster(2, 2).queue("mine", 2).queue("theirs", 2)
    for number in range(2):
        cluster.job(f"r{number}", "theirs", [f"n{number}"], preemptible=False)
    text = cluster.job("j", "mine", [""], gpus=2, preemptible=False).explained("j")
    assert "Its queue is within its fair share of 2 GPUs; other queues hold 0 beyond theirs" in text
