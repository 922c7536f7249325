"""Removes the queue gate of pods as their queues get room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.kai import Queue
from spinney.api.meta import Key
from spinney.api.resource import ResourceClaim, ResourceClaimTemplate
from spinney.kube.caches.cache import Cache, Change
from spinney.kube.client.client import Patch
from spinney.kube.client.discovery import Discovery
from spinney.kube.controllers.controller import Controller
from spinney.kube.errors import Invalid, NotFound
from spinney.kube.runtime import Runtime
from spinney.services.admission.queue_gates import plan_release
from spinney.services.admission.settings import AdmissionSettings
from spinney.services.pods.claims import Claims

_ALL: Key = ("", "all")
_GATHER_SECONDS = 0.5


async def claims_of_cluster(runtime: Runtime) -> Claims:
    """The caches of device claims and templates; empty where the cluster does not serve them."""
    if not await Discovery(runtime.client).serves(ResourceClaim.resource.api_version):
        return Claims()
    return Claims(runtime.caches.of(ResourceClaim), runtime.caches.of(ResourceClaimTemplate))


class GateController:
    """The controller of queue gates."""

    def __init__(self, runtime: Runtime, settings: AdmissionSettings, claims: Claims) -> None:
        self._client = runtime.client
        self._settings = settings
        self._claims = claims
        self._pods = runtime.caches.of(Pod)
        self._queues = runtime.caches.of(Queue)
        self.controller = Controller("queue-gates", runtime, self.reconcile, concurrency=1)
        self.controller.wait_for(self._pods, self._queues)
        self._pods.on_change(self._pod_changed)
        others: list[Cache[Any] | None] = [self._queues, claims.claims, claims.templates]
        for cache in others:
            if cache is not None:
                self.controller.wait_for(cache)
                cache.on_change(lambda _: self._look())

    def _look(self) -> None:
        self.controller.enqueue(*_ALL, after=_GATHER_SECONDS)

    def _pod_changed(self, change: Change[Pod]) -> None:
        if change.object.spec.scheduler_name == self._settings.scheduler_name:
            self._look()

    def _ours(self) -> Iterator[Pod]:
        return (pod for pod in self._pods if pod.spec.scheduler_name == self._settings.scheduler_name)

    async def reconcile(self, key: Key) -> None:
        """Remove the gate of every pod that fits into its queues."""
        for pod in plan_release(self._ours(), self._queues, self._claims, self._settings.queue_label):
            index = next(at for at, gate in enumerate(pod.spec.scheduling_gates) if gate.name == labels.QUEUE_GATE)
            where = f"/spec/schedulingGates/{index}"
            patch = [
                {"op": "test", "path": f"{where}/name", "value": labels.QUEUE_GATE},
                {"op": "remove", "path": where},
            ]
            try:
                await self._client.patch(Pod, pod.key, patch, kind=Patch.JSON)
            except (NotFound, Invalid):
                # The pod is gone, or its gates changed meanwhile: the next reconcile sees that.
                continue
