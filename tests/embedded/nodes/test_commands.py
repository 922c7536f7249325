"""Nodes that fail, fall silent, drain, disappear and return, in virtual time."""

from __future__ import annotations

import asyncio

from spinney.api.core import Node, Pod
from spinney.api.policy import PodDisruptionBudget
from spinney.embedded.cluster import Cluster
from tests import make
from tests.embedded.virtual import after, condition, get, on_cluster, phase, pod


async def ready(cluster: Cluster, name: str) -> str:
    """The status of a node's Ready condition."""
    node = await get(cluster, Node.resource, name)
    return str(next(c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"))


async def taints(cluster: Cluster, name: str) -> set[str]:
    """A node's taints, as `key:effect`."""
    node = await get(cluster, Node.resource, name)
    return {f"{t['key'].rpartition('/')[2]}:{t['effect']}" for t in node["spec"].get("taints", [])}


@on_cluster()
async def test_a_node_that_fails_is_tainted_and_its_pods_stop_counting(cluster: Cluster) -> None:
    """Ready=False, both taints, pods unready at once and evicted when their toleration runs out; then all is well."""
    body = make.pod("a").on("node-00").build()
    body["spec"]["tolerations"] = [
        {
            "key": "node.kubernetes.io/not-ready",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 60,
        }
    ]
    await pod(cluster, body)
    await after(1)
    await cluster.commands.fail("node-00")
    await after(1)
    assert await ready(cluster, "node-00") == "False"
    assert await taints(cluster, "node-00") == {"not-ready:NoSchedule", "not-ready:NoExecute"}
    assert await condition(cluster, "a", "Ready") == "False"

    await cluster.commands.recover("node-00")
    await after(1)
    assert await ready(cluster, "node-00") == "True"
    assert await taints(cluster, "node-00") == set()
    assert await condition(cluster, "a", "Ready") == "True"

    await cluster.commands.fail("node-00")
    await after(61)
    stored = await get(cluster, Pod.resource, "a")
    assert stored["metadata"]["deletionTimestamp"]
    assert await condition(cluster, "a", "DisruptionTarget") == "True"

    await cluster.commands.recover("node-00")
    await after(1)
    assert await phase(cluster, "a") == "gone"


@on_cluster()
async def test_a_silent_node_turns_unknown_after_the_usual_grace(cluster: Cluster) -> None:
    """The control plane waits 50 s for a heartbeat before it calls the node unreachable."""
    await cluster.commands.stop_reporting("node-00")
    await after(49)
    assert await ready(cluster, "node-00") == "True"
    await after(2)
    assert await ready(cluster, "node-00") == "Unknown"
    assert await taints(cluster, "node-00") == {"unreachable:NoSchedule", "unreachable:NoExecute"}


@on_cluster()
async def test_a_drained_node_is_empty_and_takes_no_more(cluster: Cluster) -> None:
    """Cordoned, tainted, and its pods evicted."""
    await pod(cluster, make.pod("a").on("node-00").build())
    await pod(cluster, make.pod("b").on("node-01").build())
    await after(1)
    await cluster.commands.drain("node-00")
    await after(1)
    assert await phase(cluster, "a") == "gone"
    assert await phase(cluster, "b") == "Running"
    assert await taints(cluster, "node-00") == {"unschedulable:NoSchedule"}


@on_cluster()
async def test_a_drain_waits_for_the_budget(cluster: Cluster) -> None:
    """An eviction that the disruption budget forbids is tried again until it is allowed."""
    client = cluster.client()
    budget = {
        "metadata": {"name": "keep"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    await client.create(PodDisruptionBudget, budget, "default")
    await pod(cluster, make.pod("a").label("app", "web").on("node-00").build())
    await after(1)

    drain = asyncio.create_task(cluster.commands.drain("node-00"))
    await after(60)
    assert await phase(cluster, "a") == "Running"
    await pod(cluster, make.pod("b").label("app", "web").on("node-01").build())
    await after(60)
    assert drain.done()
    assert await phase(cluster, "a") == "gone"


@on_cluster()
async def test_a_node_that_disappears_takes_its_pods_along_and_may_return(cluster: Cluster) -> None:
    """Pods of a node that is gone are removed after 40 s; the node comes back as it was, healthy and empty."""
    await pod(cluster, make.pod("a").on("node-00").gpus(8).build())
    await after(1)
    removed = await cluster.commands.remove("node-00")
    await after(30)
    assert await phase(cluster, "a") == "Running"
    await after(15)
    assert await phase(cluster, "a") == "gone"

    await cluster.commands.restore(removed)
    await after(1)
    assert await ready(cluster, "node-00") == "True"
    node = await get(cluster, Node.resource, "node-00")
    assert node["metadata"]["labels"] == removed["metadata"]["labels"]
    await pod(cluster, make.pod("b").on("node-00").gpus(8).build())
    await after(1)
    assert await phase(cluster, "b") == "Running"


@on_cluster()
async def test_a_node_that_is_back_in_time_keeps_its_pods(cluster: Cluster) -> None:
    """Within the quarantine nothing is lost."""
    await pod(cluster, make.pod("a").on("node-00").build())
    await after(1)
    removed = await cluster.commands.remove("node-00")
    await after(30)
    await cluster.commands.restore(removed)
    await after(60)
    assert await phase(cluster, "a") == "Running"
