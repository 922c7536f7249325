"""Pod garbage collection: pods whose node is gone, and deleted pods that never had one."""

from __future__ import annotations

from spinney.api.core import Node, Pod
from spinney.api.meta import Json, Key
from spinney.api.pod_state import is_finished
from spinney.embedded.controllers.writes import BY_NODE, condition, delete_once, node_name, patch_status
from spinney.kube.caches.cache import Change
from spinney.kube.client.client import Patch
from spinney.kube.controllers.controller import After, Controller
from spinney.kube.runtime import Runtime

# A node that registers again within this time keeps its pods.
QUARANTINE_SECONDS = 40.0


class PodGC:
    """The pod garbage collector."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._nodes = runtime.caches.of(Node)
        self._pods = runtime.caches.of(Pod)
        self._pods.index(BY_NODE, node_name)
        self._missing_since: dict[str, float] = {}
        self.controller = Controller("pod-gc", runtime, self._reconcile)
        self.controller.watch(self._nodes, self._pods_of, when=lambda change: change.new is None)
        self.controller.watch(self._pods, when=self._lost)

    def _pods_of(self, change: Change[Node]) -> list[Key]:
        return [pod.key for pod in self._pods.by(BY_NODE, change.object.name)]

    def _lost(self, change: Change[Pod]) -> bool:
        pod = change.new
        if pod is None:
            return False
        if not pod.spec.node_name:
            return pod.metadata.deletion_timestamp is not None
        return self._nodes.has_synced and self._nodes.get(pod.spec.node_name) is None

    async def _reconcile(self, key: Key) -> After | None:
        pod = self._pods.get(key)
        if pod is None:
            return None
        name = pod.spec.node_name
        if not name:
            if pod.metadata.deletion_timestamp is not None and pod.metadata.deletion_grace_period_seconds != 0:
                await self._remove(pod, [])
            return None
        if self._nodes.get(name) is not None:
            self._missing_since.pop(name, None)
            return None
        now = self._clock.now().timestamp()
        left = self._missing_since.setdefault(name, now) + QUARANTINE_SECONDS - now
        if left > 0:
            return After(left)
        target = ("DisruptionTarget", "True", "DeletionByPodGC", "PodGC: node no longer exists")
        await self._remove(pod, [condition(*target, self._clock.now())])
        return None

    async def _remove(self, pod: Pod, conditions: list[Json]) -> None:
        if not is_finished(pod):
            await patch_status(self._client, pod, {"phase": "Failed", "conditions": conditions}, Patch.STRATEGIC)
        if not (pod.metadata.deletion_timestamp and pod.metadata.deletion_grace_period_seconds == 0):
            await delete_once(self._client, pod, grace_seconds=0)
