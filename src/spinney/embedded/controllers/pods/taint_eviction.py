"""Taint eviction: NoExecute taints delete pods, at once or when their toleration runs out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

from spinney.api.affinity import Taint
from spinney.api.core import Node, Pod
from spinney.api.meta import Key
from spinney.api.pod_state import is_active
from spinney.embedded.controllers.writes import BY_NODE, condition, delete_once, node_name, patch_status
from spinney.kube.caches.cache import Change
from spinney.kube.client.client import Patch
from spinney.kube.controllers.controller import After, Controller
from spinney.kube.runtime import Runtime


def seconds_left(pod: Pod, taints: Iterable[Taint], now: datetime) -> float:
    """How long a pod may stay with these NoExecute taints; infinity where it tolerates all without limit."""
    left = math.inf
    for taint in taints:
        if taint.effect != "NoExecute":
            continue
        matching = [toleration for toleration in pod.spec.tolerations if toleration.tolerates(taint)]
        if not matching:
            return 0.0
        limits = [toleration.toleration_seconds for toleration in matching if toleration.toleration_seconds is not None]
        if limits:
            since = (now - taint.time_added).total_seconds() if taint.time_added else 0.0
            left = min(left, max(0.0, min(limits) - since))
    return left


class TaintEviction:
    """The taint eviction controller."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._nodes = runtime.caches.of(Node)
        self._pods = runtime.caches.of(Pod)
        self._pods.index(BY_NODE, node_name)
        self.controller = Controller("taint-eviction", runtime, self._reconcile)
        self.controller.watch(self._nodes, self._pods_of, when=_taints_changed)
        self.controller.watch(self._pods, when=self._on_tainted)

    def _pods_of(self, change: Change[Node]) -> list[Key]:
        return [pod.key for pod in self._pods.by(BY_NODE, change.object.name)]

    def _on_tainted(self, change: Change[Pod]) -> bool:
        node = self._nodes.get(change.object.spec.node_name) if change.new else None
        return node is not None and any(taint.effect == "NoExecute" for taint in node.spec.taints)

    async def _reconcile(self, key: Key) -> After | None:
        pod = self._pods.get(key)
        node = self._nodes.get(pod.spec.node_name) if pod else None
        if pod is None or node is None or not is_active(pod):
            return None
        left = seconds_left(pod, node.spec.taints, self._clock.now())
        if left == math.inf:
            return None
        if left > 0:
            return After(left)
        message = "Taint manager: deleting due to NoExecute taint"
        target = condition("DisruptionTarget", "True", "DeletionByTaintManager", message, self._clock.now())
        await patch_status(self._client, pod, {"conditions": [target]}, Patch.STRATEGIC)
        await delete_once(self._client, pod)
        return None


def _taints_changed(change: Change[Node]) -> bool:
    before = change.old.spec.taints if change.old else ()
    return change.new is not None and change.new.spec.taints != before
