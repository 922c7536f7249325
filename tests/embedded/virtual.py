"""A cluster in virtual time, for tests: `run(test)` hands it to a coroutine function."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from spinney.api.core import Pod
from spinney.api.meta import Json, Resource
from spinney.embedded.apiserver.server import ApiServer
from spinney.embedded.cluster import Cluster
from spinney.embedded.nodes.kubelet import Program
from spinney.embedded.nodes.profile import Profile
from spinney.kube.chance import Chance
from spinney.kube.clock import Clock
from spinney.kube.errors import NotFound
from spinney.sim.loop import clock, run_virtual
from tests.virtual_time import LIMIT, first_argument_from

# Certificates are made by chance that no seed repeats, so that of a test is none.
CA = "the certificate of the cluster"


def run(
    test: Callable[[Cluster], Awaitable[None]],
    *,
    nodes: Profile | None = None,
    programs: Mapping[str, Program] | None = None,
    server: Callable[[Clock, Chance], ApiServer] = ApiServer,
) -> None:
    """Run a test on a fresh cluster with two nodes, unless told otherwise."""

    async def main() -> None:
        profile = nodes or Profile(count=2, racks=1)
        chance = Chance(7)
        api = server(clock(), chance)
        made = Cluster(nodes=profile, clock=clock(), chance=chance, server=api, programs=programs, ca_certificate=CA)
        async with made as cluster:
            await test(cluster)

    run_virtual(main(), limit=LIMIT)


def on_cluster(**options: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """A test on a fresh cluster; the options are those of `run`."""
    return first_argument_from(lambda test: run(test, **options))


async def pod(cluster: Cluster, body: Json) -> None:
    """Create a pod."""
    await cluster.client().create(Pod, body, body["metadata"].get("namespace", "default"))


async def phase(cluster: Cluster, name: str) -> str:
    """A pod's phase, or `gone`."""
    pod = await get(cluster, Pod.resource, name)
    return str(pod["status"]["phase"]) if pod else "gone"


async def get(cluster: Cluster, resource: Resource, name: str, namespace: str = "default") -> Json:
    """An object as plain data; empty where it is not there."""
    try:
        return await cluster.client().get(resource, (namespace if resource.namespaced else "", name))
    except NotFound:
        return {}


async def condition(cluster: Cluster, name: str, type_: str) -> Any:
    """The status of a condition of a pod."""
    pod = await get(cluster, Pod.resource, name)
    return next((c["status"] for c in pod["status"]["conditions"] if c["type"] == type_), None)


async def after(seconds: float) -> None:
    """Let virtual time pass, and everything that is due with it."""
    await asyncio.sleep(seconds)


class FirstNode:
    """Stands in for a scheduler: binds every pod to the first node as soon as it is seen."""

    def __init__(self, cluster: Cluster) -> None:
        self._client = cluster.client()
        self._cache = cluster.caches.of(Pod)
        self._cache.on_change(lambda change: self._bind(change.new) if change.new else None)
        self._tasks: set[asyncio.Task[Json]] = set()
        self._seen: set[str] = set()

    def _bind(self, pod: Pod) -> None:
        if pod.spec.node_name or pod.uid in self._seen:
            return
        self._seen.add(pod.uid)
        body = {"metadata": {"name": pod.name}, "target": {"kind": "Node", "name": "node-00"}}
        task = asyncio.create_task(self._client.post(Pod, pod.key, "binding", body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
