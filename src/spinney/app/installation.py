"""What `spinney up` puts into a fresh cluster, so that every example can be tried at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, cast

from spinney.api import core, grove, kai, resource, scheduling, storage, volcano
from spinney.api.apiextensions import CustomResourceDefinition
from spinney.api.conditions import is_true
from spinney.api.crd import FOREIGN_GROUPS, OUR_GROUPS, crds
from spinney.api.labels import (
    DEFAULT_PARENT_QUEUE,
    DEFAULT_QUEUE,
    KAI_CONFIG,
    RESERVATION_NAMESPACE,
    SCALE_ADJUST_NAMESPACE,
)
from spinney.api.meta import Json, Resource
from spinney.backends.registry import Registry
from spinney.kube.client.client import Client
from spinney.kube.desired import Step
from spinney.kube.writer import Writer

SYSTEM_NAMESPACE = "spinney-system"
RUNTIME_CLASS = Resource("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", namespaced=False)
# An unlimited quota, too: pods that are not preemptible must fit into it.
_UNLIMITED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
PRIORITIES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
_LEVELS = {"zone": "zone", "block": "block", "rack": "rack", "host": "hostname"}


def cluster_objects() -> list[tuple[Resource, Json]]:
    """What belongs to any cluster with our nodes: a storage class and device classes."""
    gpu = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
    channel = (
        "device.driver == 'compute-domain.nvidia.com' && "
        "device.attributes['compute-domain.nvidia.com'].type == 'channel'"
    )
    return [
        (
            storage.StorageClass.resource,
            {
                **_named("standard", annotations={"storageclass.kubernetes.io/is-default-class": "true"}),
                "provisioner": "spinney.dev/simulated",
                "volumeBindingMode": "WaitForFirstConsumer",
            },
        ),
        _device_class("gpu.nvidia.com", gpu),
        _device_class("compute-domain-default-channel.nvidia.com", channel),
    ]


def platform_objects() -> list[tuple[Resource, Json]]:
    """Queues, priorities, topology and the other things that our components and the examples expect."""
    namespaces = (SYSTEM_NAMESPACE, RESERVATION_NAMESPACE, SCALE_ADJUST_NAMESPACE)
    levels = [{"domain": domain, "key": f"kubernetes.io/{label}"} for domain, label in _LEVELS.items()]
    return [
        *((core.Namespace.resource, _named(name)) for name in namespaces),
        # Reservation and scaling pods run as these.
        *(
            (core.ServiceAccount.resource, _named(name, namespace=name))
            for name in (RESERVATION_NAMESPACE, SCALE_ADJUST_NAMESPACE)
        ),
        *((scheduling.PriorityClass.resource, {**_named(n), "value": v}) for n, v in PRIORITIES.items()),
        (RUNTIME_CLASS, {**_named("nvidia"), "handler": "nvidia"}),
        _queue(DEFAULT_PARENT_QUEUE),
        _queue(DEFAULT_QUEUE, parent=DEFAULT_PARENT_QUEUE),
        (volcano.Queue.resource, {**_named("default"), "spec": {"weight": 1}}),
        (grove.ClusterTopologyBinding.resource, {**_named("grove-topology"), "spec": {"levels": levels}}),
        (kai.Config.resource, {**_named(KAI_CONFIG), "spec": {"admission": {"gpuSharing": True}}}),
        (kai.SchedulingShard.resource, {**_named("default"), "spec": {}}),
    ]


async def install_crds(client: Client) -> None:
    """Our kinds and those of the registered backends, served when this returns."""
    definitions = {definition["metadata"]["name"]: definition for definition in _definitions()}
    await asyncio.gather(*(apply(client, CustomResourceDefinition.resource, each) for each in definitions.values()))
    await _established(client, set(definitions))


async def install_foreign_crds(client: Client, definitions: Sequence[Json]) -> None:
    """Kinds of other projects, served when this returns; a definition that is there already stays as it is."""
    await install(client, ((CustomResourceDefinition.resource, each) for each in definitions))
    await _established(client, {each["metadata"]["name"] for each in definitions})


async def _established(client: Client, waiting: set[str]) -> None:
    while waiting:
        # A watch may end at any time; the next one begins with what is there.
        async with aclosing(cast(AsyncGenerator[Any, None], client.stream(CustomResourceDefinition))) as events:
            async for event in events:
                if event.object is not None and is_true(event.object.status.conditions, "Established"):
                    waiting.discard(event.object.name)
                if not waiting:
                    return


def _definitions() -> Iterator[Json]:
    for backend in Registry.load():
        yield from backend.crds
    yield from crds((*OUR_GROUPS, *FOREIGN_GROUPS))


async def install(client: Client, objects: Iterable[tuple[Resource, Json]]) -> None:
    """Create what is not there; what a user has changed since stays as it is."""
    for resource_, document in objects:
        await Writer(client).create(resource_, document)


async def apply(client: Client, resource_: Resource, document: Json) -> None:
    """Apply a cluster-scoped object of ours as this version wants it; fields that it no longer names go."""
    await Writer(client).apply(Step("apply", resource_, ("", document["metadata"]["name"]), document))


def _named(name: str, **metadata: Any) -> Json:
    return {"metadata": {"name": name, **metadata}}


def _queue(name: str, parent: str = "") -> tuple[Resource, Json]:
    spec: Json = {"resources": {kind: dict(_UNLIMITED) for kind in ("cpu", "gpu", "memory")}}
    if parent:
        spec["parentQueue"] = parent
    return kai.Queue.resource, {**_named(name), "spec": spec}


def _device_class(name: str, expression: str) -> tuple[Resource, Json]:
    selectors = [{"cel": {"expression": expression}}]
    return resource.DeviceClass.resource, {**_named(name), "spec": {"selectors": selectors}}
