"""EndpointSlices: the addresses of a service's pods, at most 100 per slice, with as few writes as possible."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from spinney.api.core import Node, Pod, Service
from spinney.api.discovery import EndpointSlice
from spinney.api.meta import Json, Key
from spinney.api.owners import controller_reference
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
from spinney.kube.caches.cache import Change
from spinney.kube.errors import Forbidden, NotFound
from spinney.kube.runtime import Runtime

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
CONTROLLER = "endpointslice-controller.k8s.io"
ZONE = "topology.kubernetes.io/zone"
MOST = 100

_Ports = tuple[tuple[tuple[str, object], ...], ...]


@dataclass
class SlicePlan:
    """Slices to create, to change by name, and to delete by name."""

    create: list[Json] = field(default_factory=list)
    change: dict[str, Json] = field(default_factory=dict)
    delete: list[str] = field(default_factory=list)


def endpoint(pod: Pod, service: Service, zone: str) -> Json:
    """The endpoint of a pod; a terminating pod may be serving without being ready."""
    serving, going = is_ready(pod), pod.metadata.deletion_timestamp is not None
    ready = service.spec.publish_not_ready_addresses or (serving and not going)
    return {
        "addresses": [pod.status.pod_ip],
        "conditions": {"ready": ready, "serving": serving, "terminating": going},
        **hostname(pod, service),
        "targetRef": target(pod),
        **({"nodeName": pod.spec.node_name} if pod.spec.node_name else {}),
        **({"zone": zone} if zone else {}),
    }


def wanted_labels(service: Service) -> dict[str, str]:
    """The labels of a service's slices."""
    reserved = (HEADLESS, SERVICE_NAME, MANAGED_BY)
    own = {key: value for key, value in service.metadata.labels.items() if key not in reserved}
    headless = {HEADLESS: ""} if service.headless else {}
    return {**own, **headless, SERVICE_NAME: service.name, MANAGED_BY: CONTROLLER}


def plan_slices(service: Service, pods: list[Pod], zones: dict[str, str], slices: list[EndpointSlice]) -> SlicePlan:
    """The changes after which slices hold these pods; pods on unknown nodes only if unready ones are published."""
    wanted: dict[_Ports, list[Json]] = {}
    numbers: dict[_Ports, list[Json]] = {}
    for pod in pods:
        if not has_address(pod):
            continue
        pod_ports = ports(service, pod)
        numbers[_key(pod_ports)] = pod_ports
        entries = wanted.setdefault(_key(pod_ports), [])
        if pod.spec.node_name in zones or service.spec.publish_not_ready_addresses:
            entries.append(endpoint(pod, service, zones.get(pod.spec.node_name, "")))
    plan = SlicePlan()
    own = [slice_ for slice_ in slices if service.uid in {owner.uid for owner in slice_.metadata.owner_references}]
    plan.delete = [slice_.name for slice_ in slices if slice_ not in own]
    for key, entries in wanted.items():
        _fill(service, numbers[key], entries, [slice_ for slice_ in own if _key(slice_.ports or ()) == key], plan)
    plan.delete += [slice_.name for slice_ in own if _key(slice_.ports or ()) not in wanted]
    if len(plan.delete) == len(slices) and not plan.create:
        _keep_one(service, own, plan)
    _reuse(own, plan)
    return plan


def _fill(
    service: Service, numbers: list[Json], entries: list[Json], slices: list[EndpointSlice], plan: SlicePlan
) -> None:
    """Distribute the endpoints of one set of ports: to slices that change anyway, one with room, new ones."""
    left = {_identity(entry): entry for entry in entries}
    labels = wanted_labels(service)
    unchanged: list[EndpointSlice] = []
    changed: list[tuple[EndpointSlice, list[Json]]] = []
    for slice_ in slices:
        old = slice_.endpoints or ()
        kept = [left.pop(_identity(entry)) for entry in old if _identity(entry) in left]
        if not kept and old:
            plan.delete.append(slice_.name)
        elif kept != list(old) or slice_.metadata.labels != labels:
            changed.append((slice_, kept))
        else:
            unchanged.append(slice_)
    rest = list(left.values())
    for _, kept in sorted(changed, key=lambda pair: -len(pair[1])):
        taken = rest[: MOST - len(kept)]
        kept.extend(taken)
        rest = rest[len(taken) :]
    roomy = [slice_ for slice_ in unchanged if len(slice_.endpoints or ()) + len(rest) <= MOST]
    if rest and len(rest) < MOST and roomy:
        fullest = max(roomy, key=lambda slice_: len(slice_.endpoints or ()))
        changed.append((fullest, [*(fullest.endpoints or ()), *rest]))
        rest = []
    for slice_, kept in changed:
        plan.change[slice_.name] = {"metadata": {"labels": labels}, "endpoints": kept}
    for start in range(0, len(rest), MOST):
        plan.create.append(_slice(service, numbers, rest[start : start + MOST]))


def _keep_one(service: Service, own: list[EndpointSlice], plan: SlicePlan) -> None:
    """Keep or create one empty slice for a service without pods."""
    labels = wanted_labels(service)
    empty = [slice_ for slice_ in own if not slice_.ports and not slice_.endpoints]
    if len(plan.delete) == 1 and any(slice_.metadata.labels == labels for slice_ in empty):
        plan.delete = []
    else:
        plan.create.append(_slice(service, [], []))


def _reuse(own: list[EndpointSlice], plan: SlicePlan) -> None:
    """Change a slice instead of deleting it and creating another."""
    names = {slice_.name for slice_ in own}
    for name in [name for name in plan.delete if name in names][: len(plan.create)]:
        new_slice = plan.create.pop()
        plan.delete.remove(name)
        labels = {"labels": new_slice["metadata"]["labels"]}
        plan.change[name] = {"metadata": labels, "endpoints": new_slice["endpoints"], "ports": new_slice["ports"]}


def _slice(service: Service, numbers: list[Json], entries: list[Json]) -> Json:
    prefix = f"{service.name}-"
    metadata = {
        "generateName": prefix,
        "labels": wanted_labels(service),
        "ownerReferences": [controller_reference(service)],
    }
    return {"metadata": metadata, "addressType": "IPv4", "endpoints": entries, "ports": numbers}


def _key(numbers: list[Json] | tuple[Json, ...]) -> _Ports:
    return tuple(sorted(tuple(sorted(port.items())) for port in numbers))


def _identity(entry: Json) -> tuple[object, ...]:
    reference = entry.get("targetRef") or {}
    return (tuple(entry["addresses"]), entry.get("hostname"), reference.get("namespace"), reference.get("name"))


class SliceWriter:
    """Writes the EndpointSlices of services."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self.nodes = runtime.caches.of(Node)
        self.cache = runtime.caches.of(EndpointSlice)
        self.cache.index("service", _service)

    async def write(self, service: Service, pods: list[Pod], trigger: str | None) -> None:
        """Update a service's slices."""
        of_service = self.cache.by("service", f"{service.namespace}/{service.name}")
        existing = {slice_.name: slice_ for slice_ in of_service if slice_.metadata.deletion_timestamp is None}
        nodes = (self.nodes.get(name) for name in {pod.spec.node_name: None for pod in pods})
        zones = {node.name: node.metadata.labels.get(ZONE, "") for node in nodes if node is not None}
        plan = plan_slices(service, pods, zones, list(existing.values()))
        with suppress(Forbidden, NotFound):
            # The namespace is being deleted, or someone else deleted a slice.
            for document in plan.create:
                document["metadata"]["annotations"] = {TRIGGER: trigger} if trigger else {}
                await self._client.create(EndpointSlice, document, service.namespace)
            for name, change in plan.change.items():
                await self._change(existing[name], change, trigger)
            for name in plan.delete:
                await self._client.delete(EndpointSlice, (service.namespace, name), uid=existing[name].uid)

    async def _change(self, old: EndpointSlice, change: Json, trigger: str | None) -> None:
        metadata = {
            "resourceVersion": old.metadata.resource_version,
            "labels": map_patch(change["metadata"]["labels"], old.metadata.labels),
            "annotations": {TRIGGER: trigger},
        }
        await self._client.patch(EndpointSlice, old.key, {**change, "metadata": metadata})


def service_keys(change: Change[EndpointSlice]) -> list[Key]:
    """The services of a changed slice, before and after."""
    slices = (slice_ for slice_ in (change.old, change.new) if slice_ is not None)
    texts = sorted({text for slice_ in slices for text in _service(slice_)})
    return [(namespace, name) for namespace, _, name in (text.partition("/") for text in texts)]


def _service(endpoint_slice: EndpointSlice) -> tuple[str, ...]:
    labels = endpoint_slice.metadata.labels
    if labels.get(MANAGED_BY) != CONTROLLER:
        return ()
    return (f"{endpoint_slice.namespace}/{labels.get(SERVICE_NAME, '')}",)
