"""Allocate devices to resource claims (DRA), on a given node."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spinney.api.affinity import selects_node
from spinney.api.core import Node
from spinney.api.meta import Json
from spinney.api.quantity import exact
from spinney.api.resource import (
    Device,
    DeviceClass,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from spinney.scheduler.intake.device_selectors import Selectors, plain_value, selectors_of_class, selectors_of_request

# A device is known by its driver, its pool and its name.
DeviceId = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Offer:
    """A device that can be used on a node, and its ResourceSlice."""

    device: Device
    slice: ResourceSlice

    @property
    def id(self) -> DeviceId:
        """Driver, pool and name of the device."""
        return self.slice.spec.driver, self.slice.spec.pool.name, self.device.name

    def matches(self, selectors: Selectors) -> bool:
        """Whether the device is one of those that selectors ask for."""
        return selectors.match(self.slice.spec.driver, self.device)


def offers_on(node: Node, slices: Iterable[ResourceSlice]) -> list[Offer]:
    """The devices of the newest generation of each pool that can be used on a node, in order."""
    newest: dict[tuple[str, str], int] = {}
    reachable = [resource_slice for resource_slice in slices if _reaches(resource_slice, node)]
    for resource_slice in reachable:
        pool = (resource_slice.spec.driver, resource_slice.spec.pool.name)
        newest[pool] = max(newest.get(pool, 0), resource_slice.spec.pool.generation)
    return [
        Offer(device, resource_slice)
        for resource_slice in sorted(reachable, key=lambda resource_slice: resource_slice.name)
        if resource_slice.spec.pool.generation == newest[resource_slice.spec.driver, resource_slice.spec.pool.name]
        for device in resource_slice.spec.devices
        if not any(taint.effect in ("NoSchedule", "NoExecute") for taint in device.taints)
    ]


def _reaches(resource_slice: ResourceSlice, node: Node) -> bool:
    spec = resource_slice.spec
    if spec.node_name:
        return spec.node_name == node.name
    return spec.all_nodes or (
        spec.node_selector is not None and selects_node(spec.node_selector, node.name, node.metadata.labels)
    )


def gpus_on(node: str, slices: Iterable[ResourceSlice]) -> int:
    """The number of GPUs on a node: devices of drivers whose name contains "gpu"."""
    return sum(
        len(resource_slice.spec.devices)
        for resource_slice in slices
        if resource_slice.spec.node_name == node and "gpu" in resource_slice.spec.driver
    )


def count_in_class(offers: Iterable[Offer], device_class: DeviceClass) -> int:
    """The number of devices that belong to a class."""
    return sum(offer.matches(selectors_of_class(device_class)) for offer in offers)


def in_use(claims: Iterable[ResourceClaim]) -> set[DeviceId]:
    """The devices that claims hold."""
    return {
        (result.driver, result.pool, result.device)
        for claim in claims
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
        if not result.admin_access
    }


def allocate(
    claim: ResourceClaim, node: Node, offers: list[Offer], taken: set[DeviceId], classes: Mapping[str, DeviceClass]
) -> Json | None:
    """The allocation of a claim on a node, or None where what it asks for is not free there.

    Requests are served in order; devices that must have an attribute in common are taken from one value of it.
    Raises SelectorError where a selector does not compile or fails on a device.
    """
    common = [constraint.match_attribute for constraint in claim.spec.devices.constraints if constraint.match_attribute]
    for value in _values(offers, common[0]) if common else (None,):
        allowed = [offer for offer in offers if value is None or _attribute(offer, common[0]) == value]
        results = _serve(claim, allowed, set(taken), classes)
        if results is not None:
            return {"devices": {"results": results}, "nodeSelector": _only(node.name)}
    return None


def _serve(
    claim: ResourceClaim, offers: list[Offer], taken: set[DeviceId], classes: Mapping[str, DeviceClass]
) -> list[Json] | None:
    results: list[Json] = []
    for request in claim.spec.devices.requests:
        # Of alternatives the first that can be had counts; the result names it as request/alternative.
        subrequests = [(request.name, request.exactly)] if request.exactly is not None else []
        subrequests += [
            (f"{request.name}/{alternative.name}", _as_exact(alternative)) for alternative in request.first_available
        ]
        for name, subrequest in subrequests:
            chosen = _choose(claim, subrequest, offers, taken, classes)
            if chosen is not None:
                taken |= {offer.id for offer in chosen if not subrequest.admin_access}
                results += [_result(name, offer, subrequest) for offer in chosen]
                break
        else:
            return None
    return results


def _as_exact(subrequest: DeviceSubRequest) -> ExactDeviceRequest:
    return ExactDeviceRequest(
        device_class_name=subrequest.device_class_name,
        selectors=subrequest.selectors,
        allocation_mode=subrequest.allocation_mode,
        count=subrequest.count,
    )


def _choose(
    claim: ResourceClaim,
    subrequest: ExactDeviceRequest,
    offers: list[Offer],
    taken: set[DeviceId],
    classes: Mapping[str, DeviceClass],
) -> list[Offer] | None:
    device_class = classes.get(subrequest.device_class_name)
    if device_class is None:
        return None
    of_class, of_request = selectors_of_class(device_class), selectors_of_request(claim, subrequest)
    fitting = [offer for offer in offers if offer.matches(of_class) and offer.matches(of_request)]
    everything = subrequest.allocation_mode == "All"
    wanted = len(fitting) if everything else (subrequest.count or 1)
    chosen: list[Offer] = []
    for offer in fitting:
        if len(chosen) == wanted:
            break
        free = subrequest.admin_access or offer.device.allow_multiple_allocations or offer.id not in taken
        if free and _counters_suffice(offer, [*chosen], offers, taken):
            chosen.append(offer)
    return chosen if len(chosen) == wanted and chosen else None


def _counters_suffice(offer: Offer, chosen: list[Offer], offers: list[Offer], taken: set[DeviceId]) -> bool:
    """Whether the shared counters suffice for one more partition of a device."""
    if not offer.device.consumes_counters:
        return True
    pool = offer.id[:2]
    holders = [holder for holder in offers if holder.id[:2] == pool and (holder.id in taken or holder in chosen)]
    total = {
        (holder.name, counter): exact(value.value)
        for other in offers
        if other.id[:2] == pool
        for holder in other.slice.spec.shared_counters
        for counter, value in holder.counters.items()
    }
    for holder in (*holders, offer):
        for consumed in holder.device.consumes_counters:
            for counter, value in consumed.counters.items():
                key = (consumed.counter_set, counter)
                total[key] = total.get(key, exact(0)) - exact(value.value)
    return all(left >= 0 for left in total.values())


def _result(request: str, offer: Offer, subrequest: ExactDeviceRequest) -> Json:
    driver, pool, device = offer.id
    result: Json = {"request": request, "driver": driver, "pool": pool, "device": device}
    return {**result, "adminAccess": True} if subrequest.admin_access else result


def _only(node: str) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def _values(offers: list[Offer], name: str) -> list[Any]:
    return list(dict.fromkeys(value for offer in offers if (value := _attribute(offer, name)) is not None))


def _attribute(offer: Offer, name: str) -> Any:
    """An attribute by its full name; one without a domain is the driver's own."""
    domain, _, short = name.rpartition("/")
    attributes = offer.device.attributes
    attribute = attributes.get(name) or (attributes.get(short) if domain == offer.slice.spec.driver else None)
    return plain_value(attribute) if attribute is not None else None


def check_selectors(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> None:
    """Raise SelectorError where a selector of a claim, or of a class that it names, does not compile."""
    for request in claim.spec.devices.requests:
        exactly = [request.exactly] if request.exactly is not None else []
        for subrequest in (*exactly, *map(_as_exact, request.first_available)):
            if subrequest.device_class_name in classes:
                selectors_of_class(classes[subrequest.device_class_name]).check()
            selectors_of_request(claim, subrequest).check()


def missing_class(claim: ResourceClaim, classes: Container[str]) -> str:
    """The name of a device class that a claim needs and that does not exist; empty if there is none."""
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            names = [request.exactly.device_class_name]
        else:
            names = [alternative.device_class_name for alternative in request.first_available]
        if names and not any(name in classes for name in names):
            return names[0]
    return ""


def requested_classes(claim: ResourceClaim) -> Iterator[tuple[str, int]]:
    """The device classes that a claim asks for first, and how many devices of each."""
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            whole = request.exactly.allocation_mode == "All"
            yield request.exactly.device_class_name, 1 if whole else (request.exactly.count or 1)
        elif request.first_available:
            yield request.first_available[0].device_class_name, request.first_available[0].count or 1
