"""The stand-in cluster autoscaler: nodes come for unschedulable pods and go when they are idle."""

from __future__ import annotations

from functools import partial

import pytest
from click.testing import CliRunner

from spinney.api.core import Event, Node, Pod
from spinney.api.meta import Json
from spinney.cli.main import main
from spinney.embedded.cluster import Cluster
from spinney.embedded.controllers.autoscaling.cluster_autoscaler import ClusterAutoscaler
from spinney.embedded.controllers.autoscaling.node_groups import NodeGroup, ScalingPlan, plan_scaling
from spinney.embedded.nodes.profile import Profile
from spinney.kube.client.client import Patch
from tests import make
from tests.e2e.installation import Installed, end_to_end
from tests.embedded.virtual import after, on_cluster

BURST = NodeGroup("burst", 0, 4, Profile(gpus=8))
SMALL = NodeGroup("small", 1, 2, Profile(gpus=2))
UNSCHEDULABLE: Json = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def waiting(name: str, gpus: int) -> Pod:
    """A pod that a scheduler found no place for."""
    return make.pod(name).gpus(gpus).status(phase="Pending", conditions=[UNSCHEDULABLE]).typed(Pod)


def added(plan: ScalingPlan) -> list[str]:
    """The names of the nodes to add."""
    return [manifest["metadata"]["name"] for _, manifest in plan.add]


def test_pods_share_the_nodes_that_are_added() -> None:
    """Four pods of four GPUs need two nodes of eight."""
    plan = plan_scaling([BURST], [], [waiting(f"w{number}", 4) for number in range(4)])
    assert added(plan) == ["burst-00", "burst-01"]
    assert [pod.name for pod, _ in plan.triggered] == ["w3", "w1"]


def test_what_is_free_is_used_first() -> None:
    """One of two pods fits the node that is there; a pod that is being deleted leaves its place to another."""
    node = make.node("n1", 8).typed(Node)
    leaving = make.pod("old").gpus(8).on("n1").metadata(deletionTimestamp="2026-01-01T00:00:00Z").typed(Pod)
    assert added(plan_scaling([BURST], [node], [leaving, waiting("a", 8), waiting("b", 8)])) == ["burst-00"]


def test_the_first_group_that_a_pod_fits_is_taken() -> None:
    """In the order in which the groups were named; the least number is always there."""
    plan = plan_scaling([SMALL, BURST], [], [waiting("a", 8), waiting("b", 2)])
    assert added(plan) == ["small-00", "burst-00"]


@pytest.mark.parametrize(("gpus", "why"), [(8, "max node group size reached: burst"), (16, "it fits no node group")])
def test_a_pod_that_no_node_comes_for_is_told_why(gpus: int, why: str) -> None:
    """The group is full, or its nodes are too small."""
    nodes = [make.node(f"n{number}", 0).metadata(labels={"spinney.dev/node-group": "burst"}) for number in range(4)]
    plan = plan_scaling([BURST], [node.typed(Node) for node in nodes], [waiting("w", gpus)])
    assert [(pod.name, text) for pod, text in plan.refused] == [("w", why)]


def test_selectors_and_taints_are_respected() -> None:
    """A pod that asks for another group, or does not tolerate its taint, needs none of its nodes."""
    tainted = NodeGroup("burst", 0, 4, Profile(taints=({"key": "k", "value": "v", "effect": "NoSchedule"},)))
    elsewhere = make.pod("e").gpus(1).status(phase="Pending", conditions=[UNSCHEDULABLE])
    elsewhere.spec(nodeSelector={"spinney.dev/node-group": "other"})
    assert not plan_scaling([BURST], [], [elsewhere.typed(Pod)]).add
    assert not plan_scaling([tainted], [], [waiting("w", 1)]).add


@on_cluster(nodes=Profile(count=0))
async def test_idle_nodes_go_down_to_the_least_number(cluster: Cluster) -> None:
    """A node comes at once for a pod, stays while it is used, and goes a minute after that."""
    groups = [NodeGroup("burst", 1, 4, Profile(gpus=8))]
    await cluster.start_controller(partial(ClusterAutoscaler, groups=groups, register=cluster.nodes.register_one))
    client = cluster.client()

    async def names() -> list[str]:
        return sorted(node.name for node in (await client.list(Node)).items)

    await after(5)
    assert await names() == ["burst-00"]
    for name in ("a", "b"):
        await client.create(Pod, make.pod(name).gpus(8).build(), "default")
        patch = {"status": {"conditions": [UNSCHEDULABLE]}}
        await client.patch(Pod, ("default", name), patch, subresource="status", kind=Patch.STRATEGIC)
    await after(5)
    assert await names() == ["burst-00", "burst-01"]
    reasons = {event.reason for event in (await client.list(Event, "default")).items}
    assert "TriggeredScaleUp" in reasons
    for name, node in (("a", "burst-00"), ("b", "burst-01")):
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        await client.post(Pod, ("default", name), "binding", body)
    await after(300)
    assert await names() == ["burst-00", "burst-01"]
    for name in ("a", "b"):
        await client.delete(Pod, ("default", name))
    await after(50)
    assert await names() == ["burst-00", "burst-01"]
    await after(60)
    assert await names() == ["burst-00"]


@end_to_end(Profile(count=1, gpus=8, racks=1, blocks=1), stand_in=True, node_groups=(BURST,))
async def test_a_gang_and_shared_gpus_get_the_nodes_that_they_lack(held: Installed) -> None:
    """With our scheduler and the node scale adjuster: three nodes for a gang of four, one more for half a GPU."""
    await held.job("gang", 4, 8, queue="default-queue")
    await held.runs("gang", 4)
    half = make.pod("half").scheduler("kai-scheduler").annotate("gpu-fraction", "0.5")
    half.label("kai.scheduler/queue", "default-queue")
    await held.apply(half.build())
    await held.runs("half", 1)
    nodes = {node.name for node in (await held.client.list(Node)).items}
    assert nodes == {"node-00", "burst-00", "burst-01", "burst-02", "burst-03"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max=3", "write name=NAME and any of min, max, gpus, cpu, memory, idle"),
        ("name=a,size=3", "write name=NAME and any of min, max, gpus, cpu, memory, idle"),
        ("name=a,min=5,max=2", "node group a: min 5 and max 2 must be 0 ≤ min ≤ max"),
    ],
)
def test_a_group_that_cannot_be_is_a_usage_error(text: str, message: str) -> None:
    """It says what to write."""
    result = CliRunner().invoke(main, ["up", "--node-group", text])
    assert result.exit_code == 2
    assert message in result.output
