"""Node life cycle: taints follow conditions and cordons, and pods of a lost node become unready."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime

from spinney.api.conditions import find, is_true
from spinney.api.core import Node, Pod
from spinney.api.meta import Json, Key
from spinney.api.pod_state import is_finished, is_ready
from spinney.api.times import rfc3339
from spinney.embedded.controllers.writes import BY_NODE, node_name, patch_status
from spinney.kube.client.client import Patch
from spinney.kube.controllers.controller import Controller
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Runtime

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PRESSURE = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_OURS = frozenset({NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURE.values()})


def plan_taints(node: Node, now: datetime) -> list[Json] | None:
    """The whole list of a node's taints, or None where it is right."""
    wanted = _wanted(node)
    have = {(taint.key, taint.effect) for taint in node.spec.taints if taint.key in _OURS}
    if have == wanted:
        return None
    kept = [
        {"key": t.key, "effect": t.effect, **({"value": t.value} if t.value else {}), **_added(t.time_added)}
        for t in node.spec.taints
        if t.key not in _OURS or (t.key, t.effect) in wanted
    ]
    return kept + [
        {"key": key, "effect": effect, **(_added(now) if effect == "NoExecute" else {})}
        for key, effect in sorted(wanted - have)
    ]


def _wanted(node: Node) -> set[tuple[str, str]]:
    wanted: set[tuple[str, str]] = set()
    ready = find(node.status.conditions, "Ready")
    if ready is not None and ready.status != "True":
        key = NOT_READY if ready.status == "False" else UNREACHABLE
        wanted |= {(key, "NoSchedule"), (key, "NoExecute")}
    if node.spec.unschedulable:
        wanted.add((UNSCHEDULABLE, "NoSchedule"))
    for type_, key in _PRESSURE.items():
        if is_true(node.status.conditions, type_):
            wanted.add((key, "NoSchedule"))
    return wanted


def _added(moment: datetime | None) -> Json:
    return {"timeAdded": rfc3339(moment)} if moment else {}


class NodeTaints:
    """The node life cycle controller."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._nodes = runtime.caches.of(Node)
        self._pods = runtime.caches.of(Pod)
        self._pods.index(BY_NODE, node_name)
        self.controller = Controller("node-lifecycle", runtime, self._reconcile).watch(self._nodes)

    async def _reconcile(self, key: Key) -> None:
        node = self._nodes.get(key[1])
        if node is None:
            return
        taints = plan_taints(node, self._clock.now())
        if taints is not None:
            version = {"resourceVersion": node.metadata.resource_version}
            with suppress(NotFound):
                await self._client.patch(Node, node.name, {"metadata": version, "spec": {"taints": taints}})
        ready = find(node.status.conditions, "Ready")
        if ready is not None and ready.status != "True":
            await asyncio.gather(*(self._mark_unready(pod) for pod in self._pods.by(BY_NODE, node.name)))

    async def _mark_unready(self, pod: Pod) -> None:
        if not is_ready(pod) or is_finished(pod):
            return
        moment = rfc3339(self._clock.now())
        unready = {"type": "Ready", "status": "False", "reason": "NodeNotReady", "lastTransitionTime": moment}
        await patch_status(self._client, pod, {"conditions": [unready]}, Patch.STRATEGIC)
