"""`spinney status`: the tree of a set says where each pod is and what everything waits for."""

from __future__ import annotations

from spinney.answers.model import WorkloadTree
from spinney.answers.reading import read_cluster
from spinney.cli.ask.status import trees
from spinney.kube.clock import SystemClock
from tests.grove.stage import Stage, sample
from tests.grove.virtual import played


async def tree(stage: Stage, name: str) -> WorkloadTree:
    """The tree of a set as it is now."""
    (only,) = trees(await read_cluster(stage.client, SystemClock(), "default"), name, "default")
    return only


@played(nodes=10)
async def test_the_tree_shows_gangs_cliques_and_pods(stage: Stage) -> None:
    """A set's tree has its gangs, their cliques with counts, and pods with state and node."""
    await stage.apply(*sample("e2e-yaml/workload2"))
    await stage.runs(10)
    answer = await tree(stage, "pcs/workload2")
    workload = answer.workload
    assert (str(workload.ref), workload.phase, workload.ready, workload.total) == (
        "podcliqueset/workload2",
        "Running",
        10,
        10,
    )
    assert [gang.name for gang in answer.groups] == ["workload2-0", "workload2-0-sg-x-0"]
    clique = answer.groups[0].groups[0]
    assert (clique.name, clique.ready, clique.total, clique.minimum) == ("workload2-0-pc-a", 2, 2, 1)
    assert clique.pods[0].phase == "Ready"
    assert (clique.pods[0].node or "").startswith("node-")
    assert [step.step for step in answer.timeline][-1] == "ready"


@played(nodes=10)
async def test_the_tree_says_what_things_wait_for(stage: Stage) -> None:
    """A gang without room has the scheduler's words, its pods do not repeat them; a scaled one waits for its base."""
    await stage.cordon(10)
    await stage.apply(*sample("e2e-yaml/workload2"))
    await stage.settle(20)
    answer = await tree(stage, "workload2")
    base, scaled = answer.groups
    assert answer.workload.phase == "Waiting"
    assert answer.workload.why is not None
    assert "no room" in base.detail
    assert {pod.reason for clique in base.groups for pod in clique.pods} == {None}
    assert "base gang" in scaled.detail
    assert scaled.groups[0].pods[0].phase == "Gated"
