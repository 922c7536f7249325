"""What keeps a gang waiting, as `spinney explain` tells it: every blocker by name, with numbers, and its cure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from spinney.api.affinity import Taint
from spinney.api.missing import Lack, Missing
from spinney.scheduler.state.refusal import Code, Refusal
from spinney.scheduler.state.specs import (
    Constraint,
    Constraints,
    GpuRequest,
    Match,
    PodTerm,
    Share,
    TopologySpec,
)
from tests.scheduler.clusters import NOW, Cluster

Step = Callable[[Cluster], object]
ENOUGH = 100


def runs(cluster: Cluster) -> bool:
    """Whether the gang gets a place."""
    return any(decision.job == "j" and decision.kind in ("bind", "wait") for decision in cluster.plan().decisions)


def gang(gpus: float = 1, pods: int = 1, queue: str = "q", **more: object) -> Step:
    """A gang that waits."""
    return lambda cluster: cluster.job("j", queue, [""] * pods, gpus=gpus, **more)  # type: ignore[arg-type]  # by row


def with_rules(rules: Constraints) -> Step:
    """The pods of the gang follow rules."""

    def change(cluster: Cluster) -> None:
        for key, task in list(cluster.state.tasks.items()):
            if key.startswith("j-"):
                cluster.state.set_task(replace(task.spec, constraints=rules, labels={"app": "j"}))

    return change


def node(**changes: object) -> Step:
    """The first node is changed."""
    return lambda cluster: cluster.state.set_node(replace(cluster.state.nodes.spec(0), **changes))  # type: ignore[arg-type]  # by row


def queue(name: str, **shares: object) -> Step:
    """A queue is changed."""
    return lambda cluster: cluster.state.set_queue(replace(cluster.state.queue_specs[name], **shares))  # type: ignore[arg-type]  # by row


def full(priority: int = 10, preemptible: bool = True, where: str = "q", started: float = NOW - 600) -> Step:
    """Every GPU of the first node is in use."""

    def change(cluster: Cluster) -> None:
        cluster.job("r", where, ["n0"] * 4, priority=priority, preemptible=preemptible)
        cluster.state.set_job(replace(cluster.state.jobs["r"].spec, last_start=started))

    return change


def kept_by(allowed: int) -> Step:
    """A disruption budget for who runs."""

    def change(cluster: Cluster) -> None:
        cluster.state.set_budget("ns/r", allowed)
        for key, task in list(cluster.state.tasks.items()):
            if key.startswith("r-"):
                cluster.state.set_task(replace(task.spec, budgets=("ns/r",)))

    return change


def rack(*names: str) -> Step:
    """Nodes in racks."""

    def change(cluster: Cluster) -> None:
        cluster.state.set_topology(TopologySpec("tree", (("rack", ""),)))
        for number, name in enumerate(names):
            cluster.node(f"n{number}", 4, rack=name, host=f"n{number}")

    return change


def share_of(memory: int) -> Step:
    """The gang asks for memory of a GPU."""
    return lambda cluster: cluster.state.set_task(
        replace(cluster.state.tasks["j-0"].spec, gpu=GpuRequest(memory=memory))
    )


APART = Constraints(anti_affinity=(PodTerm("host", (Match("app", "In", ("j",)),)),))
ONE_RACK = Constraint("tree", required="rack")
BLOCKERS: dict[str, tuple[list[Step], list[str], list[Step]]] = {
    "too few GPUs": (
        [gang(4, 3)],
        ["Resources were found for 1 pods while 3 are required", "room for 2 more pods, each with 4 GPUs"],
        [lambda cluster: cluster.node("m0", 4).node("m1", 4)],
    ),
    "no node is large enough": (
        [gang(8)],
        ["no node is large enough, even an empty one: add nodes for 1 more pod with 8 GPUs"],
        [lambda cluster: cluster.node("m0", 8)],
    ),
    "limit": (
        [gang(1, 4, "capped")],
        ["Limit is 3 GPUs", "raise the limit of queue capped by 1 GPU."],
        [queue("capped", gpu=Share(2, 4, 1))],
    ),
    "quota": (
        [gang(1, 3, "capped", preemptible=False)],
        ["but capped quota is 2 GPUs", "raise the quota of queue capped by 1 GPU, or make the workload preemptible."],
        [queue("capped", gpu=Share(4, 4, 1))],
    ),
    "no queue": ([gang(queue="nowhere")], ["create queue nowhere."], [lambda cluster: cluster.queue("nowhere", 4)]),
    "topology": (
        [rack("a", "b"), gang(4, 2, inside=ONE_RACK)],
        ["the largest rack holds 1 of 2 pods even when nothing else runs there: add nodes for 1 more to a"],
        [lambda cluster: cluster.node("m0", 4, rack="a")],
    ),
    "no topology": (
        [gang(4, 1, inside=ONE_RACK)],
        ["create topology tree."],
        [rack("a")],
    ),
    "taint": (
        [gang(), node(taints=(Taint(key="kept", effect="NoSchedule"),))],
        ["tolerate the taint kept, or take it off the node that has room"],
        [node(taints=())],
    ),
    "cordon": (
        [gang(), node(blocked=Refusal(Code.NODE_UNSCHEDULABLE))],
        ["uncordon the node that has room"],
        [node(blocked=None)],
    ),
    "node selector": (
        [gang(), with_rules(Constraints(node_selector=(("disk", "fast"),)))],
        ["relax the pod's node selector or affinity, or label the node that has room accordingly"],
        [node(labels={"disk": "fast"})],
    ),
    "pods that keep apart": (
        [rack("a"), gang(1, 2), with_rules(APART)],
        ["relax the pod's rules about other pods, which rule out the node that has room"],
        [with_rules(Constraints())],
    ),
    "claim": (
        [gang(), with_rules(Constraints(impossible=Missing(Lack.VOLUME_CLAIM, "data")))],
        ["→ create persistentvolumeclaim data."],
        [with_rules(Constraints())],
    ),
    "share of a GPU": (
        [gang(0.5), share_of(2000)],
        ["no node is large enough, even an empty one: add nodes for 1 more pod with 2000 MiB of a GPU"],
        [share_of(500)],
    ),
    "priority": (
        [full(priority=50), gang(4)],
        ["None of the 4 pods that run in its queue has a lower priority."],
        [lambda cluster: cluster.state.set_job(replace(cluster.state.jobs["j"].spec, priority=90))],
    ),
    "victims that may not be evicted": (
        [full(preemptible=False), gang(4, priority=90)],
        ["4 of 4 pods that run in its queue have a lower priority; of these 4 may not be evicted and 0 are kept"],
        [full()],
    ),
    "disruption budget": (
        [full(), gang(4, priority=90), kept_by(0)],
        ["of these 0 may not be evicted and 4 are kept by disruption budgets."],
        [kept_by(4)],
    ),
    "minimal run time": (
        [queue("q", preempt_min_runtime=600.0), full(started=NOW - 60), gang(4, priority=90)],
        ["4 have not run for their minimal time yet, until 1970-01-12T13:55:40Z."],
        [full(started=NOW - 601)],
    ),
    "minimal run time elsewhere": (
        [queue("q", gpu=Share(0, -1, 1), reclaim_min_runtime=600.0), full(started=NOW - 60), gang(4, queue="owed")],
        ["4 pods of other queues have not run for their minimal time yet; the last of them will have at 1970-01-12T"],
        [full(started=NOW - 601)],
    ),
    "what others are owed": (
        [full(where="owed"), gang(4)],
        ["Its queue is within its fair share of 4 GPUs; other queues hold 0 beyond theirs."],
        [full(where="q"), lambda cluster: cluster.state.set_job(replace(cluster.state.jobs["j"].spec, priority=90))],
    ),
}


@pytest.mark.parametrize("name", BLOCKERS)
def test_every_blocker_is_named_and_its_cure_helps(name: str) -> None:
    """The gang waits, is told why and what helps; then it is done, and the gang has a place."""
    before, sentences, cure = BLOCKERS[name]
    cluster = Cluster(4).queue("q", ENOUGH).queue("capped", 2, limit=3).queue("owed", 4)
    for step in before:
        step(cluster)
    assert not runs(cluster)
    text = cluster.explained("j")
    for sentence in sentences:
        assert sentence in text
    for step in cure:
        step(cluster)
    assert runs(cluster)


@pytest.mark.parametrize(
    "name", ["no node is large enough", "node selector", "claim", "pods that keep apart", "cordon"]
)
def test_who_might_leave_is_not_told_where_that_is_no_help(name: str) -> None:
    """A gang that lacks something other than room hears nothing of those who run."""
    cluster = Cluster(4).queue("q", ENOUGH).queue("capped", 2, limit=3).queue("owed", 4)
    for step in BLOCKERS[name][0]:
        step(cluster)
    assert "Its queue" not in cluster.explained("j")
