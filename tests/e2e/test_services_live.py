"""The services on the embedded and on the real API server, in real time, each with just the rights it declares."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from spinney.api import labels
from spinney.api.core import Node
from spinney.api.kai import Config, Queue, SchedulingShard
from spinney.cli.components import load
from spinney.cli.installation import install, install_crds, platform_objects
from spinney.embedded.nodes.kubelet import Kubelets
from spinney.embedded.nodes.node import Nodes
from spinney.embedded.nodes.profile import Profile
from spinney.kube.cache import Caches
from spinney.kube.clock import SystemClock
from spinney.kube.manifests import manifests
from spinney.kube.runtime import Runtime
from tests import worlds
from tests.e2e.installation import NAMESPACE, Installed, platform, ready

# The API server has no way to our webhooks here; they have tests of their own.
CONFIG = {
    "admission": {"service": {"enabled": False}},
    "queueController": {"webhooks": {"enableValidation": False}},
    "podGroupController": {"webhooks": {"enableValidation": False}},
}


@asynccontextmanager
async def services(cluster: worlds.Cluster, count: int) -> AsyncIterator[Installed]:
    """An installation with some nodes of 8 GPUs, which goes as it came."""
    client = cluster.client()
    await install_crds(client)
    await install(client, platform_objects())
    await client.patch(Config, "kai-config", "", {"spec": CONFIG})
    held = Installed(client)
    await held.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for document in manifests(load("platform"), NAMESPACE):
        await held.apply(document)
    async with _nodes(cluster, count), platform(lambda name: _client(cluster, name), SystemClock()):
        for kind in (Config, SchedulingShard):
            await ready(held, kind)
        yield held
        await held.clean()
    await client.delete(SchedulingShard, "default")
    await client.delete(Config, "kai-config")


def _client(cluster: worlds.Cluster, account: str) -> Any:
    return cluster.client(f"system:serviceaccount:{NAMESPACE}:{account}")


@asynccontextmanager
async def _nodes(cluster: worlds.Cluster, count: int) -> AsyncIterator[None]:
    client = cluster.client()
    runtime = Runtime(client=client, caches=Caches(client), clock=SystemClock())
    registry = Nodes(runtime, lease_seconds=10.0 if cluster.name == "real" else None)
    lives: list[Any] = [runtime.caches.run()]
    if cluster.name == "real":
        lives += [registry.run(), Kubelets(runtime).run()]
    tasks = [asyncio.create_task(life) for life in lives]
    profile = Profile(count=count, racks=1, blocks=1, gpus=8, prefix=cluster.unique("gpu"))
    try:
        await registry.register(profile)
        yield
        for index in range(count):
            await client.delete(Node, profile.name(index))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_jobs_gangs_and_queues(cluster: worlds.Cluster) -> None:
    """Jobs fill a cluster; a gang waits whole; a queue gets its quota back; usage is told."""
    async with services(cluster, 2) as held:
        await held.queue("borrower", "default-parent-queue", quota=8)
        await held.queue("lender", "default-parent-queue", quota=8)
        await held.job("fill", pods=16, queue="borrower")
        await held.runs("fill", 16)
        await held.job("gang", pods=8, queue="lender", annotations={labels.BATCH_MIN_MEMBER: "8"})
        await held.runs("gang", 8)
        assert len(await held.running("fill")) == 8

        async def told() -> bool:
            queue = await held.client.get(Queue, "lender")
            return queue.status.allocated.get(labels.GPU_RESOURCE) == "8"

        await held.eventually(told)
        await held.clean()
        for name in ("borrower", "lender"):
            await held.client.delete(Queue, name)


async def test_priority_preempts(cluster: worlds.Cluster) -> None:
    """A job of higher priority takes the place of a lower one of its queue, which comes back later."""
    async with services(cluster, 1) as held:
        await held.job("low", pods=1, gpus=8, queue="default-queue", labels={labels.PRIORITY_CLASS: "train"})
        await held.runs("low", 1)
        await held.job(
            "high", pods=1, gpus=8, queue="default-queue", labels={labels.PRIORITY_CLASS: "build-preemptible"}
        )
        await held.runs("high", 1)
        assert await held.running("low") == []
        await held.drop_job("high")
        await held.runs("low", 1)
