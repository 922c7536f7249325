"""Resource claims of pods: their requests, the nodes that serve them, and the devices of a placement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from spinney.api.affinity import selects_node
from spinney.api.core import Node, Pod
from spinney.api.meta import Json, Key, Object, convert
from spinney.api.missing import Lack, Missing
from spinney.api.resource import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from spinney.api.volumes import Reach
from spinney.kube.caches.cache import Cache, Caches, Change
from spinney.scheduler.intake.device_selectors import SelectorError
from spinney.scheduler.intake.devices import (
    DeviceId,
    Offer,
    allocate,
    check_selectors,
    count_in_class,
    gpus_on,
    in_use,
    missing_class,
    offers_on,
    requested_classes,
)
from spinney.scheduler.intake.extended_resources import classes_by_resource, needs_devices, requests_of
from spinney.scheduler.service.views import Views
from spinney.scheduler.state.specs import DeviceRequest


class NoDevices(Exception):
    """A node's devices do not suffice for a pod's claims; the message says why."""


def _too_few(node: str) -> str:
    return f"node {node} has too few devices left for the pod's claims; other nodes are tried"


class DeviceClaims:
    """The scheduler's view of dynamic resource allocation."""

    def __init__(self, caches: Caches, views: Views, warn: Callable[[Object, str], None]) -> None:
        self._nodes = views.nodes
        self._pods = views.pods
        # Tells people what is wrong with an object.
        self._warn = warn
        self._claims = caches.of(ResourceClaim)
        self._slices = caches.of(ResourceSlice)
        self._classes = caches.of(DeviceClass)
        # Allocations that have been decided and cannot be seen yet, by claim.
        self._decided: dict[Key, Json] = {}
        # The same for extended resources, whose claims are made by the binder; by the UID of the pod.
        self._extended: dict[str, Json] = {}
        self._claims.on_change(self._claim_seen)

    async def synced(self) -> None:
        """Wait until everything has been listed once."""
        for cache in (self._claims, self._slices, self._classes):
            await cache.synced()

    def on_change(self, claims_changed: Callable[[], None], slice_changed: Callable[[str], None]) -> None:
        """Register callbacks for changed claims or classes, and for changed devices of a node."""
        caches: tuple[Cache[Any], ...] = (self._claims, self._classes)
        for cache in caches:
            cache.on_change(lambda change: claims_changed())

        def every_node(_: Change[DeviceClass]) -> None:
            for node in self._nodes:
                slice_changed(node.name)

        self._classes.on_change(every_node)
        self._slices.on_change(lambda change: slice_changed(change.object.spec.node_name))

    def _claim_seen(self, change: Change[ResourceClaim]) -> None:
        claim = change.new
        if claim is not None and claim.status.allocation is not None:
            for owner in claim.metadata.owner_references:
                self._extended.pop(owner.uid, None)

    def extended_on(self, node: Node) -> dict[str, int]:
        """Extended resources that a node's devices serve and its kubelet does not; GPUs are counted elsewhere."""
        served = classes_by_resource(self._classes)
        wanted = [name for name in served if not name.endswith("gpu") and name not in node.status.allocatable]
        if not wanted:
            return {}
        offers, classes = offers_on(node, self._slices), self._by_name()
        counts = {name: self._count(offers, classes[served[name]]) for name in wanted}
        return {name: count for name, count in counts.items() if count}

    def _count(self, offers: list[Offer], device_class: DeviceClass) -> int:
        try:
            return count_in_class(offers, device_class)
        except SelectorError as error:
            self._warn(device_class, str(error))
            return 0

    def pod_gone(self, uid: str) -> None:
        """Free what was allocated to a deleted pod."""
        self._extended.pop(uid, None)

    def gpus_on(self, node: str) -> int:
        """The number of GPUs that drivers offer on a node."""
        return gpus_on(node, self._slices)

    def requests(self, pod: Pod) -> tuple[tuple[DeviceRequest, ...], Reach]:
        """The device requests of a pod, and the nodes that its allocated claims allow."""
        wanted: list[DeviceRequest] = []
        allowed: frozenset[str] | None = None
        for reference, key in claims_of(pod):
            claim = self._claims.get(key) if key is not None else None
            if claim is None or key is None:
                return (), Reach(impossible=Missing(Lack.RESOURCE_CLAIM_FROM_TEMPLATE, reference))
            allocation = self._allocation(key, claim)
            absent = missing_class(claim, self._by_name()) if allocation is None else ""
            if absent:
                return (), Reach(impossible=Missing(Lack.DEVICE_CLASS, absent))
            if allocation is None and (error := self._selector_error(claim)):
                return (), Reach(impossible=Missing(Lack.DEVICE_SELECTOR, error))
            named = any(entry.name == reference and entry.resource_claim_name for entry in pod.spec.resource_claims)
            gpus = sum(count for name, count in requested_classes(claim) if "gpu" in name)
            # Devices that are no GPUs are counted when they are chosen; a shared claim keeps its pods together.
            wanted.append(
                DeviceRequest(f"{key[0]}/{key[1]}", "gpu" if gpus else "", gpus, named, self._other_consumers(claim))
            )
            if allocation is not None and allocation.node_selector is not None:
                nodes = self._selected(allocation)
                allowed = nodes if allowed is None else allowed & nodes
        return tuple(wanted), Reach(allowed)

    def _selector_error(self, claim: ResourceClaim) -> str:
        """The compile error of a claim's selectors, which the claim is warned of; empty if all compile."""
        try:
            check_selectors(claim, self._by_name())
        except SelectorError as error:
            self._warn(claim, str(error))
            return str(error)
        return ""

    def _by_name(self) -> dict[str, DeviceClass]:
        return {device_class.name: device_class for device_class in self._classes}

    def _other_consumers(self, claim: ResourceClaim) -> int:
        """The number of consumers that are no pods of the cache; the state counts the pods."""
        consumers = claim.status.reserved_for
        pods = (self._pods.get((claim.namespace, consumer.name)) for consumer in consumers)
        return sum(pod is None or pod.uid != consumer.uid for pod, consumer in zip(pods, consumers, strict=True))

    def _selected(self, allocation: AllocationResult) -> frozenset[str]:
        return frozenset(
            node.name for node in self._nodes if selects_node(allocation.node_selector, node.name, node.metadata.labels)
        )

    def _allocation(self, key: Key, claim: ResourceClaim) -> AllocationResult | None:
        if claim.status.allocation is not None:
            self._decided.pop(key, None)
            return claim.status.allocation
        decided = self._decided.get(key)
        return convert(AllocationResult, decided) if decided is not None else None

    def allocate(self, pod: Pod, node_name: str) -> Json:
        """Allocate a pod's devices on a node, as fields of a BindRequest; raises NoDevices if they do not suffice."""
        node = self._nodes.get(node_name)
        try:
            claims = self._allocate_claims(pod, node, node_name)
            extended = self._allocate_extended(pod, node) if node is not None else {}
        except SelectorError as error:
            raise NoDevices(str(error)) from error
        spec: Json = {"resourceClaimAllocations": claims} if claims else {}
        return {**spec, "extendedResourceClaimAllocation": extended} if extended else spec

    def _allocate_claims(self, pod: Pod, node: Node | None, node_name: str) -> list[Json]:
        offers = offers_on(node, self._slices) if node is not None and pod.spec.resource_claims else []
        chosen: list[Json] = []
        decided: dict[Key, Json] = {}
        for reference, key in claims_of(pod):
            claim = self._claims.get(key) if key is not None else None
            if node is None or claim is None or key is None:
                raise NoDevices(_too_few(node_name))
            existing = self._allocation(key, claim)
            if existing is not None:
                chosen.append({"name": reference, "allocation": _plain(existing)})
                continue
            try:
                allocation = allocate(claim, node, offers, self._taken() | _devices(decided.values()), self._by_name())
            except SelectorError as error:
                self._warn(claim, str(error))
                raise
            if allocation is None:
                raise NoDevices(_too_few(node_name))
            decided[key] = allocation
            chosen.append({"name": reference, "allocation": allocation})
        self._decided |= decided
        return chosen

    def _allocate_extended(self, pod: Pod, node: Node) -> Json:
        """The allocation for a pod's extended resources; empty if it needs none."""
        served = classes_by_resource(self._classes)
        if not (resources := needs_devices(pod, node, served)):
            return {}
        requests, mappings = requests_of(pod, resources, served)
        claim = convert(ResourceClaim, {"metadata": {"name": pod.name}, "spec": {"devices": {"requests": requests}}})
        allocation = allocate(claim, node, offers_on(node, self._slices), self._taken(), self._by_name())
        if allocation is None:
            raise NoDevices(_too_few(node.name))
        self._extended[pod.uid] = allocation
        return {"allocation": allocation, "deviceRequests": requests, "containerMappings": mappings}

    def _taken(self) -> set[DeviceId]:
        return in_use(self._claims) | _devices(self._decided.values()) | _devices(self._extended.values())

    def forget(self, pod: Pod) -> None:
        """Free what was allocated for a placement that was not carried out."""
        self._extended.pop(pod.uid, None)
        for _, key in claims_of(pod):
            if key is not None:
                self._decided.pop(key, None)


def claims_of(pod: Pod) -> Iterator[tuple[str, Key | None]]:
    """The pod's references and the keys of their claims; None for a claim that its template has not made yet."""
    names_by_reference = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or names_by_reference.get(entry.name, "")
        yield entry.name, (pod.namespace, name) if name else None


def _devices(allocations: Any) -> set[DeviceId]:
    return {
        (result["driver"], result["pool"], result["device"])
        for allocation in allocations
        for result in allocation["devices"]["results"]
    }


def _plain(allocation: AllocationResult) -> Json:
    plain: Json = msgspec.to_builtins(allocation)
    return plain
