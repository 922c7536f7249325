"""A real control plane with a real kube-scheduler, our operator, our default backend, and nodes that pretend."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from spinney.api.core import Node
from spinney.api.crd import crds
from spinney.api.grove import PodCliqueSet
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.app.components import load
from spinney.backends.component import COMPONENT as BACKENDS
from spinney.embedded.nodes.kubelet import Kubelets
from spinney.embedded.nodes.node import Nodes
from spinney.grove.component import COMPONENT as GROVE
from spinney.kube.caches.cache import Cache
from spinney.kube.client.client import Client
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.controller import run_controllers
from spinney.kube.controllers.host import Host
from spinney.kube.runtime import Component, Runtime
from spinney.testing.controlplane import ControlPlane
from tests import make
from tests.backends import live
from tests.waiting import cache_until, running


class Schedules:
    """What a test sees of the cluster: it makes nodes and sets, and waits for what becomes of them."""

    def __init__(self, client: Client, host: Host) -> None:
        self.client = client
        self.pods: Cache[Pod] = host.caches.of(Pod)
        self.gangs: Cache[PodGang] = host.caches.of(PodGang)

    async def node(self, name: str, gpus: int, **labels: str) -> None:
        """Add a node."""
        builder = make.node(name, gpus).annotate("spinney.dev/simulated", "true")
        for key, value in labels.items():
            builder.label(key, value)
        await self.client.create(Node, builder.build())

    async def apply(self, pcs: make.SetBuilder, namespace: str) -> None:
        """Create a set."""
        await self.client.create(PodCliqueSet, pcs.build(), namespace)

    async def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds, looking whenever a pod or a gang changes."""
        await cache_until(holds, self.pods, self.gangs, describe=lambda: f"{what}: {self._story()}")

    def bound(self, namespace: str, prefix: str = "") -> dict[str, int]:
        """How many living pods have a node, by role."""
        counts: dict[str, int] = {}
        for pod in self.living(namespace, prefix):
            role = pod.metadata.labels["grove.io/podclique"].rpartition("-")[2]
            counts[role] = counts.get(role, 0) + bool(pod.spec.node_name)
        return counts

    def living(self, namespace: str, prefix: str = "") -> list[Pod]:
        """The pods of a namespace that are not on their way out."""
        return [
            pod
            for pod in self.pods
            if pod.namespace == namespace
            and pod.metadata.deletion_timestamp is None
            and pod.metadata.labels.get("grove.io/podgang", "").startswith(prefix)
        ]

    def refused(self, namespace: str, name: str) -> bool:
        """Whether a gang is told that there is no room: by us on 1.35, by kube-scheduler from 1.36 on."""
        gang = self.gangs.get((namespace, name))
        conditions = gang.status.conditions if gang else ()
        ours = any(c.type == "BackendReady" and c.reason == "DoesNotFitYet" for c in conditions)
        theirs = any(c.type == "BackendReady" and "Unschedulable" in c.message for c in conditions)
        return ours or theirs

    def scheduled(self, namespace: str, name: str) -> bool:
        """Whether a gang is Scheduled."""
        gang = self.gangs.get((namespace, name))
        return any(c.type == "Scheduled" and c.status == "True" for c in (gang.status.conditions if gang else ()))

    def settled(self, namespace: str) -> bool:
        """Whether every pod has a node, is held by a gate, or was told that there is none for it."""
        return all(
            pod.spec.node_name
            or pod.spec.scheduling_gates
            or any(c.type == "PodScheduled" and c.reason == "Unschedulable" for c in pod.status.conditions)
            for pod in self.living(namespace)
        )

    def _story(self) -> str:
        gangs = [
            f"{gang.namespace}/{gang.name} {c.type}={c.status} {c.reason} {c.message}"
            for gang in self.gangs
            for c in gang.status.conditions
            if c.type in ("BackendReady", "Scheduled")
        ]
        pods = [
            f"{pod.namespace}/{pod.name} has no node, gates {[gate.name for gate in pod.spec.scheduling_gates]}"
            for pod in self.pods
            if not pod.spec.node_name
        ]
        return "\n".join([*gangs, *pods])


def pretending() -> Component:
    """Nodes that renew their leases and run their pods."""

    async def run(runtime: Runtime, _: Any) -> None:
        nodes, kubelets = Nodes(runtime, lease_seconds=10.0), Kubelets(runtime)
        await run_controllers(runtime, nodes.controller, kubelets.controller)

    return Component("nodes", "Nodes that pretend.", run)


@asynccontextmanager
async def schedules(plane: ControlPlane, *services: str) -> AsyncIterator[Schedules]:
    """The operator, all backends and some services at work on a control plane whose scheduler runs."""
    client = plane.client()
    await live.install(client, crds())
    components: list[tuple[Component, Any]] = [(pretending(), None)]
    for component in (GROVE, BACKENDS, *map(load, services)):
        components.append((component, component.settings() if component.settings else None))
    host = Host(client, SystemClock(), components)
    view = Schedules(client, host)
    try:
        async with running(host):
            yield view
    finally:
        await client.close()
