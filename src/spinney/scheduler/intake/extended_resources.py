"""Extended resources that devices serve (KEP-5004): the scheduler makes a claim for the pod."""

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


def classes_by_resource(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """The device class of each extended resource; of several the newest, then the first by name."""
    served: dict[str, str] = {}
    by_name = sorted(classes, key=lambda device_class: device_class.name, reverse=True)
    for device_class in sorted(by_name, key=_created):
        served[f"{_IMPLICIT}{device_class.name}"] = device_class.name
        if device_class.spec.extended_resource_name:
            served[device_class.spec.extended_resource_name] = device_class.name
    return served


def _created(device_class: DeviceClass) -> datetime:
    return device_class.metadata.creation_timestamp or datetime.min.replace(tzinfo=UTC)


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

    An init container uses the devices of those that run after it. If these are too few, one more request serves all
    such init containers, which run one after the other.
    """
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    first_init = {
        number for number, container in enumerate(pod.spec.init_containers) if container.restart_policy != _ALWAYS
    }
    requests: list[Json] = []
    mappings: list[Json] = []
    for resource in resources:
        lasting = {
            number: _request(number, container, resource, served, count)
            for number, container in enumerate(containers)
            if number not in first_init and (count := _count(container, resource))
        }
        mappings += [_mapping(containers[number], resource, request) for number, request in lasting.items()]
        extra: Json | None = None
        lacking: list[Container] = []
        for number in sorted(first_init):
            container, missing = containers[number], _count(containers[number], resource)
            for later in (request for place, request in lasting.items() if place >= number):
                if missing > 0:
                    mappings.append(_mapping(container, resource, later))
                    missing -= later["exactly"]["count"]
            if missing > 0:
                lacking.append(container)
                if extra is None or extra["exactly"]["count"] < missing:
                    extra = _request(number, container, resource, served, missing)
        if extra is not None:
            mappings += [_mapping(container, resource, extra) for container in lacking]
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
