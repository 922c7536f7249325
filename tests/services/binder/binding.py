"""Pods, claims and BindRequests for tests of the binder, and how they ended."""

from __future__ import annotations

from typing import Any

from spinney.api.core import Namespace, PersistentVolumeClaim, Pod, ServiceAccount
from spinney.api.kai import BindRequest
from spinney.api.meta import Json
from spinney.api.resource import ResourceClaim
from spinney.api.storage import StorageClass
from spinney.services.binder.component import COMPONENT as BINDER
from tests import make
from tests.services.stage import Stage

PARTS = ((BINDER, None),)


RESERVATIONS = "kai-resource-reservation"


async def pod(world: Stage, name: str = "p", **annotations: str) -> Pod:
    """A pod of our scheduler that waits."""
    built = make.pod(name).scheduler("kai-scheduler")
    for key, value in annotations.items():
        built.annotate(key.replace("__", "/").replace("_", "-"), value)
    return await world.client.create(Pod, built.build(), "default")


async def request(
    world: Stage, for_pod: Pod, node: str = "n1", decision: tuple[str, int] = ("d", 1), **spec: Any
) -> None:
    """A decision about the pod."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": for_pod.name, "uid": for_pod.uid}
    body: Json = {
        "metadata": {
            "name": for_pod.name,
            "ownerReferences": [owner],
            "annotations": {"spinney.dev/decision": decision[0], "spinney.dev/decision-members": str(decision[1])},
        },
        "spec": {"podName": for_pod.name, "selectedNode": node, "backoffLimit": 3, **spec},
    }
    await world.client.create(BindRequest, body, "default")


async def outcome(world: Stage, name: str = "p") -> tuple[str, str, int]:
    """The request's phase, reason and number of failed attempts."""
    bind = await world.client.get(BindRequest, ("default", name))
    return bind.status.phase, bind.status.reason, bind.status.failed_attempts


async def reserved(world: Stage) -> list[Pod]:
    """The reservation pods there are."""
    return (await world.client.list(Pod, RESERVATIONS)).items


async def tell_device(world: Stage, device: str = "GPU-1") -> None:
    """What the process in a reservation pod does."""
    for holder in await reserved(world):
        patch = {"metadata": {"annotations": {"run.ai/reserve_for_gpu_index": device}}}
        await world.client.patch(Pod, (RESERVATIONS, holder.name), patch)


async def with_reservations(world: Stage) -> None:
    """The namespace of reservation pods."""
    await world.client.create(Namespace, {"metadata": {"name": RESERVATIONS}})
    await world.client.create(ServiceAccount, {"metadata": {"name": RESERVATIONS}}, RESERVATIONS)


async def claim(world: Stage, name: str, **status: Any) -> None:
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    await world.client.create(ResourceClaim, {"metadata": {"name": name}, "spec": spec}, "default")
    if status:
        await world.client.patch(ResourceClaim, ("default", name), {"status": status}, subresource="status")


ALLOCATION = {
    "devices": {"results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}]}
}


DECIDED: Json = {
    "allocation": {
        "devices": {"results": [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}]}
    },
    "deviceRequests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}],
    "containerMappings": [{"containerName": "main", "resourceName": "nvidia.com/gpu", "requestName": "gpu"}],
}


async def one_device(world: Stage) -> None:
    """A part of one GPU."""
    await _sharing(world, "g1")


async def _sharing(world: Stage, *groups: str) -> None:
    await with_reservations(world)
    wanted = await pod(world, gpu_fraction="0.5", runai__shared_gpu_configmap="p-shared-gpu")
    await request(
        world,
        wanted,
        receivedResourceType="Fraction",
        receivedGPU={"count": len(groups), "portion": "0.50"},
        selectedGPUGroups=list(groups),
    )


async def made_volume(world: Stage) -> None:
    """A volume that is made for the node."""
    body = {
        "metadata": {"name": "fast"},
        "provisioner": "example.com/disks",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    await world.client.create(StorageClass, body)
    await _with_claim(world, "fast")


async def _with_claim(world: Stage, storage_class: str) -> None:
    wanted: Json = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "5Gi"}},
    }
    await world.client.create(PersistentVolumeClaim, {"metadata": {"name": "data"}, "spec": wanted}, "default")
    built = make.pod("p").scheduler("kai-scheduler").build()
    built["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    await request(world, await world.client.create(Pod, built, "default"))
