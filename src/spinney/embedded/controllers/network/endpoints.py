"""Endpoints: the addresses of a service's pods in one object, for clients older than EndpointSlices."""

from __future__ import annotations

import json
from contextlib import suppress

from spinney.api.core import Endpoints, Pod, Service
from spinney.api.meta import Json, Key
from spinney.api.pod_state import is_ready
from spinney.embedded.controllers.network.service_pods import (
    HEADLESS,
    TRIGGER,
    has_address,
    hostname,
    map_patch,
    ports,
    target,
)
from spinney.kube.errors import AlreadyExists, Forbidden, NotFound
from spinney.kube.runtime import Runtime

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
CAPACITY = 1000


def plan_subsets(service: Service, pods: list[Pod]) -> list[Json]:
    """Addresses grouped by equal ports, ready and unready ones apart."""
    published = service.spec.publish_not_ready_addresses
    by_port: dict[str, dict[tuple[str, str], tuple[Json, bool]]] = {}
    for pod in pods:
        if not has_address(pod) or (pod.metadata.deletion_timestamp is not None and not published):
            continue
        address = {"ip": pod.status.pod_ip, **hostname(pod, service), "nodeName": pod.spec.node_name}
        entry = ({**address, "targetRef": target(pod)}, published or is_ready(pod))
        for port in ports(service, pod) if service.spec.ports else [{}]:
            by_port.setdefault(json.dumps(port), {})[pod.status.pod_ip, pod.uid] = entry
    together: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for text, addresses in by_port.items():
        together.setdefault(tuple(sorted(addresses)), []).append(text)
    return [_subset(by_port[texts[0]], [json.loads(text) for text in texts]) for _, texts in sorted(together.items())]


def _subset(addresses: dict[tuple[str, str], tuple[Json, bool]], shared: list[Json]) -> Json:
    inner = [entry for _, entry in sorted(addresses.items())]
    ready = [address for address, is_it in inner if is_it]
    waiting = [address for address, is_it in inner if not is_it]
    numbered = [_port(port) for port in shared if port]
    parts = (("addresses", ready), ("notReadyAddresses", waiting), ("ports", numbered))
    return {name: part for name, part in parts if part}


def _port(port: Json) -> Json:
    return {key: value for key, value in port.items() if key != "name" or value}


def truncated(subsets: list[Json]) -> list[Json]:
    """The subsets cut to the capacity of one object, ready addresses first."""
    left = CAPACITY
    kept = [dict(subset) for subset in subsets]
    for name in ("addresses", "notReadyAddresses"):
        for subset in kept:
            if name in subset:
                subset[name] = subset[name][: max(0, left)]
                left -= len(subset[name])
    return [{name: part for name, part in subset.items() if part} for subset in kept]


def wanted_labels(service: Service) -> dict[str, str]:
    """The labels of a service's Endpoints."""
    own = {key: value for key, value in service.metadata.labels.items() if key != HEADLESS}
    return {**own, **({HEADLESS: ""} if service.headless else {}), MANAGED_BY: "endpoint-controller"}


class EndpointsWriter:
    """Writes the Endpoints of services."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self.cache = runtime.caches.of(Endpoints)

    async def write(self, service: Service, pods: list[Pod], trigger: str | None) -> None:
        """Update a service's Endpoints."""
        existing = self.cache.get(service.key)
        whole, labels = plan_subsets(service, pods), wanted_labels(service)
        subsets = truncated(whole)
        if existing is not None and list(existing.subsets) == subsets and existing.metadata.labels == labels:
            return
        annotations: Json = {TRIGGER: trigger} if trigger else {}
        if subsets != whole:
            annotations[OVER_CAPACITY] = "truncated"
        if existing is None:
            await self._create(service, labels, annotations, subsets)
            return
        old = existing.metadata.annotations
        kept = {name: value for name, value in old.items() if name not in (TRIGGER, OVER_CAPACITY)}
        metadata = {
            "resourceVersion": existing.metadata.resource_version,
            "labels": map_patch(labels, existing.metadata.labels),
            "annotations": map_patch({**kept, **annotations}, old),
        }
        change = {"metadata": metadata, "subsets": subsets or None}
        await self._client.patch(Endpoints, service.key, change)

    async def _create(self, service: Service, labels: Json, annotations: Json, subsets: list[Json]) -> None:
        metadata = {"name": service.name, "labels": labels, "annotations": annotations}
        document = {"metadata": metadata, **({"subsets": subsets} if subsets else {})}
        with suppress(AlreadyExists, Forbidden):
            # Created meanwhile, or the namespace is being deleted.
            await self._client.create(Endpoints, document, service.namespace)

    async def remove(self, key: Key) -> None:
        """The service is gone."""
        endpoints = self.cache.get(key)
        if endpoints is not None and MANAGED_BY in endpoints.metadata.labels:
            with suppress(NotFound):
                await self._client.delete(Endpoints, endpoints.key, uid=endpoints.uid)
