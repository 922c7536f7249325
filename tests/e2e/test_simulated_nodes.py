"""Simulated nodes on an API server: the same kubelets serve the embedded cluster and a real control plane."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from spinney.api.batch import Job
from spinney.api.core import Node, Pod
from spinney.api.meta import Json, Object
from spinney.embedded.nodes.commands import NodeCommands
from spinney.embedded.nodes.profile import Profile
from spinney.kube.caches.cache import Caches
from spinney.kube.client.client import Client
from tests import make, worlds
from tests.e2e.live import simulated_nodes
from tests.waiting import cache_until


class SimulatedNodes:
    """Simulated nodes on a cluster, and the state of it as watched."""

    def __init__(self, client: Client, caches: Caches, node: str) -> None:
        self.client = client
        self.node = node
        self.commands = NodeCommands(client)
        self._caches = caches

    async def until(self, kind: type[Object], name: str, namespace: str, holds: Callable[[Any], bool]) -> None:
        """Wait until an object (None: gone) is as it should be."""
        cache = self._caches.of(kind)
        await cache.synced()
        await cache_until(lambda: holds(cache.get((namespace, name))), cache)


@asynccontextmanager
async def nodes(cluster: worlds.Cluster) -> AsyncIterator[SimulatedNodes]:
    """Two simulated nodes with two GPUs."""
    profile = Profile(count=2, racks=1, gpus=2, prefix=cluster.unique("sim"))
    async with simulated_nodes(cluster, profile) as caches:
        yield SimulatedNodes(cluster.client(), caches, profile.name(0))


def phase(wanted: str) -> Callable[[Pod | None], bool]:
    """Whether a pod is in a phase."""
    return lambda pod: pod is not None and pod.status.phase == wanted


def gone(item: Object | None) -> bool:
    """Whether an object is gone."""
    return item is None


def usable(node: Node | None) -> bool:
    """Whether a node is ready and takes pods."""
    return (
        node is not None
        and not node.spec.taints
        and any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)
    )


async def test_a_pod_runs_ends_and_goes(cluster: worlds.Cluster) -> None:
    """Nodes become usable, pods run on them, end when they should, and go when they are deleted."""
    async with nodes(cluster) as world:
        namespace = await cluster.namespace()
        await world.until(Node, world.node, "", usable)
        body = make.pod("a", namespace).on(world.node).gpus(1).build()
        await world.client.create(Pod, body, namespace)
        short = make.pod("b", namespace).on(world.node).build()
        short["spec"]["restartPolicy"] = "Never"
        short["spec"]["containers"][0]["command"] = ["sleep", "1"]
        await world.client.create(Pod, short, namespace)

        await world.until(Pod, "a", namespace, phase("Running"))
        await world.until(Pod, "b", namespace, phase("Succeeded"))
        await world.client.delete(Pod, (namespace, "a"))
        await world.until(Pod, "a", namespace, gone)


async def test_a_job_completes(cluster: worlds.Cluster) -> None:
    """Whoever runs the Job controller sees its pods end, and is let see it."""
    async with nodes(cluster) as world:
        namespace = await cluster.namespace()
        container = {"name": "main", "image": "x", "command": ["sleep", "1"]}
        spec: Json = {"restartPolicy": "Never", "nodeName": world.node, "containers": [container]}
        job = {"metadata": {"name": "train"}, "spec": {"completions": 2, "parallelism": 2, "template": {"spec": spec}}}
        await world.client.create(Job, job, namespace)

        await world.until(Job, "train", namespace, lambda job: job is not None and job.status.succeeded == 2)


async def test_a_failing_node_is_tainted_and_recovers(cluster: worlds.Cluster) -> None:
    """Whoever watches over nodes reacts to what a simulated kubelet reports."""

    def tainted(node: Node | None) -> bool:
        return node is not None and any(taint.key == "node.kubernetes.io/not-ready" for taint in node.spec.taints)

    async with nodes(cluster) as world:
        await world.until(Node, world.node, "", usable)
        await world.commands.fail(world.node)
        await world.until(Node, world.node, "", tainted)
        await world.commands.recover(world.node)
        await world.until(Node, world.node, "", usable)
