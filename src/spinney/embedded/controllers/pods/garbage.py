"""Pod garbage collection: pods whose node is gone for good, and unbound ones that nobody else can finish."""

from __future__ import annotations

from spinney.api.core import Node, Pod
from spinney.api.meta import Key
from spinney.api.times import rfc3339
from spinney.embedded.controllers.pods.state import is_terminal
from spinney.kube.caches.cache import Change
from spinney.kube.client.client import Patch
from spinney.kube.controllers.controller import After, Controller
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Runtime

# A node that registers again within this time keeps its pods.
QUARANTINE_SECONDS = 40.0


class PodGC:
    """Removes pods that no kubelet will ever remove."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._nodes = runtime.caches.of(Node)
        self._pods = runtime.caches.of(Pod)
        self._pods.index("node", lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())
        self._missing_since: dict[str, float] = {}
        self.controller = Controller("pod-gc", runtime, self._reconcile)
        self.controller.watch(self._nodes, self._pods_of, when=lambda change: change.new is None)
        self.controller.watch(self._pods, when=self._lost)

    def _pods_of(self, change: Change[Node]) -> list[Key]:
        return [(pod.namespace, pod.name) for pod in self._pods.by("node", change.object.name)]

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
            await self._finish_unbound(pod)
            return None
        if self._nodes.get(name) is not None:
            self._missing_since.pop(name, None)
            return None
        now = self._clock.now().timestamp()
        left = self._missing_since.setdefault(name, now) + QUARANTINE_SECONDS - now
        if left > 0:
            return After(left)
        await self._remove(pod, "DeletionByPodGC", "PodGC: node no longer exists")
        return None

    async def _finish_unbound(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is None or pod.metadata.deletion_grace_period_seconds == 0:
            return
        await self._remove(pod, "", "")

    async def _remove(self, pod: Pod, reason: str, message: str) -> None:
        try:
            if not is_terminal(pod):
                await self._fail(pod, reason, message)
            if not (pod.metadata.deletion_timestamp and pod.metadata.deletion_grace_period_seconds == 0):
                await self._client.delete(Pod, pod.key, uid=pod.uid, grace_seconds=0)
        except NotFound:
            return

    async def _fail(self, pod: Pod, reason: str, message: str) -> None:
        conditions = []
        if reason:
            moment = rfc3339(self._clock.now())
            target = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
            conditions = [{**target, "lastTransitionTime": moment}]
        patch = {"metadata": {"uid": pod.uid}, "status": {"phase": "Failed", "conditions": conditions}}
        await self._client.patch(Pod, pod.key, patch, kind=Patch.STRATEGIC, subresource="status")


def controller(runtime: Runtime) -> Controller:
    """The pod garbage collector."""
    return PodGC(runtime).controller
