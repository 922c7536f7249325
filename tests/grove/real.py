"""The operator's stage on the real API server: the same scenarios, in the time that they take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import count
from typing import Any

from spinney.api.core import Node
from spinney.api.crd import crds
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json, Resource
from spinney.api.nvidia import ComputeDomain
from spinney.api.podgang import PodGang
from spinney.backends.component import COMPONENT as BACKENDS
from spinney.embedded.nodes.node import Nodes
from spinney.embedded.nodes.profile import Profile
from spinney.grove.admission.defaulting import with_defaults
from spinney.grove.component import component
from spinney.grove.settings import Settings
from spinney.kube.caches.cache import Caches
from spinney.kube.client.client import Client
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from spinney.kube.errors import AlreadyExists
from spinney.kube.manifests import manifests
from spinney.kube.runtime import Component, Runtime
from spinney.sim.gang_stand_in import GangStandIn
from spinney.testing.controlplane import ControlPlane
from tests import worlds
from tests.backends import live
from tests.grove.kubelet_stand_in import KubeletStandIn
from tests.grove.stage import GROUPS, Stage
from tests.waiting import until

# Far above what anything here takes: only what never happens is to fail.
_PATIENCE = 120.0
_QUIET = 0.5
_HEARTBEAT = 10.0
_numbers = count(9000)


class RealStage(Stage):
    """A stage on a shared control plane, in a namespace of its own."""

    async def create(self, resource: Resource, body: Json, namespace: str) -> None:
        """Create one object: sets with the defaults of admission; what all namespaces share may be there already."""
        made = with_defaults(body, namespace) if resource == PodCliqueSet.resource else body
        if namespace:
            await super().create(resource, made, namespace)
            return
        with suppress(AlreadyExists):
            await super().create(resource, made, namespace)

    async def until(self, what: Callable[[], Awaitable[bool]], seconds: float = 0) -> None:
        """Wait until something holds."""
        await until(what, _PATIENCE, every=0.1, describe=self.describe)

    async def settle(self, seconds: float = 0) -> None:
        """Wait until the operator writes no more. After it only what must not happen may be asserted."""

        async def quiet() -> bool:
            before = self.operator.writes.total()
            await asyncio.sleep(_QUIET)
            return self.operator.writes.total() == before

        await self.until(quiet)


def play(
    plane: ControlPlane,
    scenario: Callable[[Stage], Awaitable[None]],
    nodes: int = 10,
    settings: Settings | None = None,
    before: Callable[[Client, str], Awaitable[None]] | None = None,
) -> None:
    """Run a scenario on a stage on the real API server; in the end the operator comes to rest."""

    async def main() -> None:
        async with AsyncExitStack() as stack:
            cluster = worlds.Cluster(worlds.Real(plane), stack, next(_numbers))
            async with _staged(cluster, nodes, settings, before) as stage:
                await scenario(stage)
                await stage.settle()

    asyncio.run(main())


@asynccontextmanager
async def _staged(
    cluster: worlds.Cluster,
    nodes: int,
    settings: Settings | None,
    before: Callable[[Client, str], Awaitable[None]] | None,
) -> AsyncIterator[RealStage]:
    admin = cluster.client()
    prefix = cluster.unique("node")
    await live.install(admin, crds(GROUPS))
    # Earlier tests end with their operator: nobody is left to let go of what they made.
    await live.clear(admin, PodCliqueSet, PodCliqueScalingGroup, PodClique, PodGang, ComputeDomain)
    namespace = await cluster.namespace()
    runtime = Runtime(client=admin, caches=Caches(admin), clock=SystemClock())
    # Nodes must be heard of: the control plane calls the pods of silent ones not ready.
    heartbeats = Nodes(runtime, lease_seconds=_HEARTBEAT)
    profile = Profile(count=nodes, prefix=prefix, labels={"type": "kwok", "node_role.e2e.grove.nvidia.com": "agent"})
    await heartbeats.register(profile)
    if before is not None:
        await before(admin, namespace)
    hosts = [await _host(cluster, made) for made in (component(settings or Settings()), BACKENDS)]
    scheduler, kubelet = GangStandIn(cluster.client(), pods_per_node=1, nodes=prefix), KubeletStandIn(cluster.client())
    parts: list[Any] = [*hosts, runtime.caches, heartbeats, scheduler, kubelet]
    tasks = [asyncio.create_task(part.run()) for part in parts]
    try:
        for host in hosts:
            await asyncio.wait_for(host.ready.wait(), _PATIENCE)
        yield RealStage(admin, hosts[0].runtimes["grove"].client, namespace, prefix)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(admin.delete(Node, profile.name(index)) for index in range(nodes)))


async def _host(cluster: worlds.Cluster, made: Component) -> Host:
    """A component with the rights that it declares, and no others."""
    role = next(document for document in manifests(made, "default") if document["kind"] == "ClusterRole")
    # The last rule is the one whose effect is waited for; it must not be about single names.
    rules = sorted(role["rules"], key=lambda rule: "resourceNames" not in rule)
    client = await cluster.granted(f"system:serviceaccount:default:{made.name}", *rules)
    return Host(client, SystemClock(), [(made, None)])
