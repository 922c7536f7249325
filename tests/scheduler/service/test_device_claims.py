"""Claims of pods through the service: devices that are shared, cut into parts, or of a class that is not there yet."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from spinney.api.core import Event, Pod
from spinney.api.kai import PodGroup
from spinney.api.meta import Json, Key, convert
from spinney.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from spinney.kube.caches.cache import Caches
from spinney.scheduler.service.device_claims import DeviceClaims
from spinney.scheduler.service.snapshot_view import FrozenCaches
from spinney.scheduler.service.views import Views
from tests import make
from tests.scheduler.service.parts import PARTS, WITH_KUBE_SCHEDULER
from tests.services.stage import Stage, stage
from tests.virtual_time import virtual

DRIVER = "gpu.example.com"


async def offer(world: Stage, node: str, *devices: Json, **spec: Any) -> None:
    """A node whose driver offers devices."""
    await world.node(node, gpus=0)
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    body = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": list(devices), **spec}
    await world.client.create(ResourceSlice, {"metadata": {"name": node}, "spec": body})


async def define(world: Stage, name: str = "gpu") -> None:
    """A class of all devices of the driver."""
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    await world.client.create(DeviceClass, {"metadata": {"name": name}, "spec": {"selectors": selectors}})


async def claim(world: Stage, name: str, device_class: str = "gpu", **request: Any) -> None:
    """A claim for one device; the queue label is what a claim that several pods share must have."""
    wish = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": device_class, **request}}]}}
    body = {"metadata": {"name": name, "labels": {"kai.scheduler/queue": "q"}}, "spec": wish}
    await world.client.create(ResourceClaim, body, "default")


async def events_about(world: Stage, kind: str, name: str) -> list[str]:
    """The messages of all events about an object."""
    events = (await world.client.list(Event, "default")).items
    about = [event for event in events if (event.involved_object.kind, event.involved_object.name) == (kind, name)]
    return [event.message for event in about]


async def gang(world: Stage, name: str, *claims: str) -> None:
    """A gang with one pod for each claim."""
    group = {"metadata": {"name": name}, "spec": {"minMember": len(claims), "queue": "q"}}
    await world.client.create(PodGroup, group, "default")
    for number, wanted in enumerate(claims):
        built = make.pod(f"{name}-{number}").scheduler("kai-scheduler").annotate("pod-group-name", name).build()
        built["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": wanted}]
        await world.client.create(Pod, built, "default")


@virtual
async def test_pods_that_share_a_claim_share_its_device_and_its_node() -> None:
    """Three pods run on the one node that has a device, and hold it together; a claim of its own waits."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        await define(world)
        await offer(world, "n1", {"name": "g0"})
        await world.node("n2", gpus=0)
        await claim(world, "together")
        await claim(world, "alone")
        await gang(world, "a", "together", "together", "together")
        await asyncio.sleep(10)
        await gang(world, "b", "alone")
        await asyncio.sleep(10)
        assert await world.placed("") == {"a-0": "n1", "a-1": "n1", "a-2": "n1", "b-0": ""}
        held = await world.client.get(ResourceClaim, ("default", "together"))
        assert len(held.status.reserved_for) == 3


@virtual
async def test_a_device_that_is_cut_into_parts_serves_as_many_pods() -> None:
    """Two halves of one device are had, a third pod waits for its counters."""

    def half(name: str) -> Json:
        return {"name": name, "consumesCounters": [{"counterSet": "g0", "counters": {"memory": {"value": "40Gi"}}}]}

    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        await define(world)
        counters = [{"name": "g0", "counters": {"memory": {"value": "80Gi"}}}]
        await offer(world, "n1", *(half(f"half-{number}") for number in range(3)), sharedCounters=counters)
        for name in ("a", "b", "c"):
            await claim(world, name)
            await gang(world, name, name)
            await asyncio.sleep(10)
        assert await world.placed("") == {"a-0": "n1", "b-0": "n1", "c-0": ""}


@virtual
async def test_a_pod_waits_for_the_class_of_its_claim_and_is_told_so() -> None:
    """Its condition names the class; once that is there, the pod runs."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        await offer(world, "n1", {"name": "g0"})
        await claim(world, "c", "late")
        await gang(world, "a", "c")
        await asyncio.sleep(10)
        pod = await world.client.get(Pod, ("default", "a-0"))
        assert any('device class "late" not found' in condition.message for condition in pod.status.conditions)
        await define(world, "late")
        await asyncio.sleep(10)
        assert await world.placed("a") == {"a-0": "n1"}


def test_a_selector_that_does_not_compile_is_told_on_the_pod_and_the_claim() -> None:
    """An API server may be older than an expression that was stored: no node helps the pod, and both say why."""
    request = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": "device.driver =="}}]}
    wish = {"devices": {"requests": [{"name": "r", "exactly": request}]}}
    objects = {
        ResourceClaim.resource: [{"metadata": {"name": "c", "namespace": "default"}, "spec": wish}],
        DeviceClass.resource: [{"metadata": {"name": "gpu"}}],
    }
    body = make.pod("p").build()
    body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "c"}]
    caches = cast(Caches, FrozenCaches(objects))
    warnings: list[tuple[Key, str]] = []
    claims = DeviceClaims(caches, Views(caches), lambda item, message: warnings.append((item.key, message)))
    _, reach = claims.requests(convert(Pod, body))
    problem = "claim default/c: selector #0: CEL compile error: Syntax error"
    assert str(reach.impossible).startswith(problem)
    assert warnings == [(("default", "c"), str(reach.impossible))]


@virtual
async def test_a_selector_that_fails_on_a_device_is_told_on_the_pod_and_the_claim() -> None:
    """Allocation stops, as in kube-scheduler, and both say why."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        await define(world)
        await offer(world, "n1", {"name": "g0"})
        await claim(world, "c", selectors=[{"cel": {"expression": "device.attributes['x.com'].model == 'a'"}}])
        await gang(world, "a", "c")
        await asyncio.sleep(10)
        problem = "claim default/c: selector #0: CEL runtime error: no such key: model"
        assert problem in await events_about(world, "Pod", "a-0")
        assert problem in await events_about(world, "ResourceClaim", "c")
        assert await world.placed("a") == {"a-0": ""}


def test_consumers_that_are_no_pods_here_count_against_a_claim() -> None:
    """A pod that is seen counts by itself; one that is gone, or that has another UID, is somebody else."""
    users = [{"resource": "pods", "name": name, "uid": uid} for name, uid in (("p", "1"), ("p2", "old"), ("gone", "3"))]
    body = {"metadata": {"name": "c", "namespace": "default"}, "status": {"reservedFor": users}}
    pods = [make.pod(name).build() for name in ("p", "p2")]
    for pod, uid in zip(pods, ("1", "2"), strict=True):
        pod["metadata"] |= {"uid": uid, "namespace": "default"}
    pods[0]["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "c"}]
    caches = cast(Caches, FrozenCaches({ResourceClaim.resource: [body], Pod.resource: pods}))
    claims = DeviceClaims(caches, Views(caches), lambda item, message: None)
    (request,), _ = claims.requests(convert(Pod, pods[0]))
    assert (request.shared, request.other_consumers) == (True, 2)
