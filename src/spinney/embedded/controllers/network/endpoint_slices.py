"""EndpointSlices: the addresses of a service's pods in objects of at most a hundred, with as few changed as can be."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from spinney.api.core import Node, Pod, Service
from spinney.api.discovery import EndpointSlice
from spinney.api.meta import Json, Key
from spinney.api.owners import controller_reference
from spinney.embedded.controllers.network.service_pods import (
    HEADLESS,
    TRIGGER,
    differing,
    has_address,
    hostname,
    ports,
    target,
)
from spinney.embedded.controllers.pods.state import is_ready
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
    """Slices to make, to change by name, and to delete by name."""

    create: list[Json] = field(default_factory=list)
    change: dict[str, Json] = field(default_factory=dict)
    delete: list[str] = field(default_factory=list)


def endpoint(pod: Pod, service: Service, zone: str) -> Json:
    """One pod's entry: ready is whether traffic should go there, serving whether it could."""
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
    """The service's own, with which service it is and who wrote this."""
    reserved = (HEADLESS, SERVICE_NAME, MANAGED_BY)
    own = {key: value for key, value in service.metadata.labels.items() if key not in reserved}
    headless = {HEADLESS: ""} if service.headless else {}
    return {**own, **headless, SERVICE_NAME: service.name, MANAGED_BY: CONTROLLER}


def plan_slices(service: Service, pods: list[Pod], zones: dict[str, str], slices: list[EndpointSlice]) -> SlicePlan:
    """What to do so that slices hold exactly these pods; those on unknown nodes only where unready ones count, too."""
    wanted: dict[_Ports, list[Json]] = {}
    numbers: dict[_Ports, list[Json]] = {}
    for pod in pods:
        if not has_address(pod):
            continue
        found = ports(service, pod)
        numbers[_key(found)] = found
        entries = wanted.setdefault(_key(found), [])
        if pod.spec.node_name in zones or service.spec.publish_not_ready_addresses:
            entries.append(endpoint(pod, service, zones.get(pod.spec.node_name, "")))
    plan = SlicePlan()
    own = [each for each in slices if any(owner.uid == service.uid for owner in each.metadata.owner_references)]
    plan.delete = [each.name for each in slices if each not in own]
    for key, entries in wanted.items():
        _fill(service, numbers[key], entries, [each for each in own if _key(each.ports or ()) == key], plan)
    plan.delete += [each.name for each in own if _key(each.ports or ()) not in wanted]
    if len(plan.delete) == len(slices) and not plan.create:
        _keep_one(service, own, plan)
    _reuse(own, plan)
    return plan


def _fill(
    service: Service, numbers: list[Json], entries: list[Json], slices: list[EndpointSlice], plan: SlicePlan
) -> None:
    """Change slices of one set of ports: first those that change anyway, then one with room, then new ones."""
    left = {_identity(entry): entry for entry in entries}
    labels = wanted_labels(service)
    unchanged: list[EndpointSlice] = []
    changed: list[tuple[EndpointSlice, list[Json]]] = []
    for each in slices:
        old = each.endpoints or ()
        kept = [left.pop(_identity(entry)) for entry in old if _identity(entry) in left]
        if not kept and old:
            plan.delete.append(each.name)
        elif kept != list(old) or each.metadata.labels != labels:
            changed.append((each, kept))
        else:
            unchanged.append(each)
    rest = list(left.values())
    for _, kept in sorted(changed, key=lambda pair: -len(pair[1])):
        taken = rest[: MOST - len(kept)]
        kept.extend(taken)
        rest = rest[len(taken) :]
    roomy = [each for each in unchanged if len(each.endpoints or ()) + len(rest) <= MOST]
    if rest and len(rest) < MOST and roomy:
        fullest = max(roomy, key=lambda each: len(each.endpoints or ()))
        changed.append((fullest, [*(fullest.endpoints or ()), *rest]))
        rest = []
    for each, kept in changed:
        plan.change[each.name] = {"metadata": {"labels": labels}, "endpoints": kept}
    for start in range(0, len(rest), MOST):
        plan.create.append(_slice(service, numbers, rest[start : start + MOST]))


def _keep_one(service: Service, own: list[EndpointSlice], plan: SlicePlan) -> None:
    """A service without any pods still has one slice, which is empty."""
    empty = [
        each for each in own if not each.ports and not each.endpoints and each.metadata.labels == wanted_labels(service)
    ]
    if len(plan.delete) == 1 and empty:
        plan.delete = []
    else:
        plan.create.append(_slice(service, [], []))


def _reuse(own: list[EndpointSlice], plan: SlicePlan) -> None:
    """Rather than delete one slice and make another, change the one into the other."""
    names = {each.name for each in own}
    for name in [name for name in plan.delete if name in names][: len(plan.create)]:
        made = plan.create.pop()
        plan.delete.remove(name)
        labels = {"labels": made["metadata"]["labels"]}
        plan.change[name] = {"metadata": labels, "endpoints": made["endpoints"], "ports": made["ports"]}


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
        """Bring a service's slices up to date."""
        of_service = self.cache.by("service", f"{service.namespace}/{service.name}")
        known = {each.name: each for each in of_service if each.metadata.deletion_timestamp is None}
        nodes = (self.nodes.get(name) for name in {pod.spec.node_name: None for pod in pods})
        zones = {node.name: node.metadata.labels.get(ZONE, "") for node in nodes if node is not None}
        plan = plan_slices(service, pods, zones, list(known.values()))
        with suppress(Forbidden, NotFound):
            # A namespace that is going takes no slices, and somebody else may delete one.
            for document in plan.create:
                document["metadata"]["annotations"] = {TRIGGER: trigger} if trigger else {}
                await self._client.create(EndpointSlice, document, service.namespace)
            for name, change in plan.change.items():
                await self._change(known[name], change, trigger)
            for name in plan.delete:
                await self._client.delete(EndpointSlice, (service.namespace, name), uid=known[name].uid)

    async def _change(self, found: EndpointSlice, change: Json, trigger: str | None) -> None:
        metadata = {
            "resourceVersion": found.metadata.resource_version,
            "labels": differing(change["metadata"]["labels"], found.metadata.labels),
            "annotations": {TRIGGER: trigger},
        }
        await self._client.patch(EndpointSlice, found.key, {**change, "metadata": metadata})


def service_keys(change: Change[EndpointSlice]) -> list[Key]:
    """The service that a slice was or is kept for, where somebody changed it."""
    texts = {text for found in (change.old, change.new) if found is not None for text in _service(found)}
    return [(namespace, name) for namespace, _, name in (text.partition("/") for text in sorted(texts))]


def _service(found: EndpointSlice) -> tuple[str, ...]:
    labels = found.metadata.labels
    return (f"{found.namespace}/{labels.get(SERVICE_NAME, '')}",) if labels.get(MANAGED_BY) == CONTROLLER else ()
