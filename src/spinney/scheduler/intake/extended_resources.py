"""Extended resources that devices serve (KEP-5004): a pod asks for a number, and gets a claim of its own for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from spinney.api.core import Node, Pod
from spinney.api.meta import Json
from spinney.api.pod import Container
from spinney.api.quantity import milli
from spinney.api.requests import pod_requests
from spinney.api.resource import DeviceClass

# Every class can also be asked for by its own name.
_IMPLICIT = "deviceclass.resource.kubernetes.io/"
_ALWAYS = "Always"


def served_by(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """Which class serves which extended resource; of several the newest, then the first by name."""
    found: dict[str, str] = {}
    by_name = sorted(classes, key=lambda each: each.name, reverse=True)
    for each in sorted(by_name, key=_created):
        found[f"{_IMPLICIT}{each.name}"] = each.name
        if each.spec.extended_resource_name:
            found[each.spec.extended_resource_name] = each.name
    return found


def _created(each: DeviceClass) -> datetime:
    return each.metadata.creation_timestamp or datetime.min.replace(tzinfo=UTC)


def needs_devices(pod: Pod, node: Node, served: Mapping[str, str]) -> list[str]:
    """The resources that a pod would get as devices on a node: those that no plugin of the node's kubelet offers."""
    wanted = pod_requests(pod.spec) if served else {}
    offered = node.status.allocatable
    return sorted(
        name
        for name, amount in wanted.items()
        if amount > 0 and name in served and not (name in offered and milli(offered[name]) > 0)
    )


def requests_of(pod: Pod, resources: Sequence[str], served: Mapping[str, str]) -> tuple[list[Json], list[Json]]:
    """Device requests for a pod's extended resources, and which of them serve which container.

    An init container uses the devices of those that run after it; where these are too few, one more request
    serves all such init containers, which run one after the other.
    """
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    first_init = {number for number, each in enumerate(pod.spec.init_containers) if each.restart_policy != _ALWAYS}
    requests: list[Json] = []
    mappings: list[Json] = []
    for resource in resources:
        lasting = {
            number: _request(number, each, resource, served, count)
            for number, each in enumerate(containers)
            if number not in first_init and (count := _count(each, resource))
        }
        mappings += [_mapping(containers[number], resource, request) for number, request in lasting.items()]
        extra: Json | None = None
        lacking: list[Container] = []
        for number in sorted(first_init):
            each, missing = containers[number], _count(containers[number], resource)
            for later in (request for place, request in lasting.items() if place >= number):
                if missing > 0:
                    mappings.append(_mapping(each, resource, later))
                    missing -= later["exactly"]["count"]
            if missing > 0:
                lacking.append(each)
                if extra is None or extra["exactly"]["count"] < missing:
                    extra = _request(number, each, resource, served, missing)
        if extra is not None:
            mappings += [_mapping(each, resource, extra) for each in lacking]
        requests += [*lasting.values(), *([extra] if extra is not None else [])]
    return sorted(requests, key=lambda request: str(request["name"])), mappings


def _count(container: Container, resource: str) -> int:
    amounts = {**container.resources.limits, **container.resources.requests}
    return milli(amounts[resource]) // 1000 if resource in amounts else 0


def _request(number: int, container: Container, resource: str, served: Mapping[str, str], count: int) -> Json:
    place = sorted({**container.resources.limits, **container.resources.requests}).index(resource)
    exactly = {"deviceClassName": served[resource], "allocationMode": "ExactCount", "count": count}
    return {"name": f"container-{number}-request-{place}", "exactly": exactly}


def _mapping(container: Container, resource: str, request: Json) -> Json:
    return {"containerName": container.name, "resourceName": resource, "requestName": request["name"]}
