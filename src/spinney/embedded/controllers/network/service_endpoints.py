"""The controller of Endpoints and EndpointSlices of services with a selector."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api.core import Endpoints, Pod
from spinney.api.meta import Key
from spinney.embedded.controllers.network.endpoint_slices import SliceWriter, service_keys
from spinney.embedded.controllers.network.endpoints import EndpointsWriter
from spinney.embedded.controllers.network.service_pods import ServicePods, Triggers, affects_endpoints
from spinney.kube.caches.cache import Change
from spinney.kube.controllers.controller import Controller
from spinney.kube.runtime import Runtime

# Changes within this time are written together.
BATCH_SECONDS = 1.0


class ServiceEndpoints:
    """Reconciles a service shortly after it, its pods or its endpoints change."""

    def __init__(self, runtime: Runtime) -> None:
        self._service_pods = ServicePods(runtime)
        self._endpoints = EndpointsWriter(runtime)
        self._slices = SliceWriter(runtime)
        self._triggers = Triggers()
        self._services = self._service_pods.services
        self.controller = Controller("endpoints", runtime, self._reconcile)
        self.controller.wait_for(self._services, self._service_pods.pods, self._endpoints.cache)
        self.controller.wait_for(self._slices.cache, self._slices.nodes)
        self._services.on_change(lambda change: self._later([change.object.key]))
        self._service_pods.pods.on_change(self._pod_changed)
        self._endpoints.cache.on_change(self._endpoints_changed)
        self._slices.cache.on_change(lambda change: self._later(service_keys(change)) if change.old else None)

    def _later(self, keys: Iterable[Key]) -> None:
        for namespace, name in keys:
            self.controller.enqueue(namespace, name, after=BATCH_SECONDS)

    def _pod_changed(self, change: Change[Pod]) -> None:
        if affects_endpoints(change):
            self._later(self._service_pods.keys(change))

    def _endpoints_changed(self, change: Change[Endpoints]) -> None:
        """Reconcile a service whose Endpoints were deleted, or Endpoints without a service."""
        key = change.object.key
        if change.new is None or self._services.get(key) is None:
            self._later([key])

    async def _reconcile(self, key: Key) -> None:
        service = self._services.get(key)
        if service is None:
            self._triggers.forget(key)
            await self._endpoints.remove(key)
            return
        if not service.selects or service.metadata.deletion_timestamp is not None:
            return
        pods = self._service_pods.of(service)
        trigger = self._triggers.since(service, pods)
        await self._endpoints.write(service, pods, trigger)
        await self._slices.write(service, pods, trigger)
