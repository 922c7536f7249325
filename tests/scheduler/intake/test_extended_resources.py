"""Extended resources that devices serve: what is asked for on behalf of a pod, and what it gets."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from spinney.api.core import Node, Pod
from spinney.api.kai import PodGroup
from spinney.api.meta import Json, convert
from spinney.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from spinney.embedded.apiserver.resources import registry
from spinney.embedded.apiserver.resources.defaults import only_spec
from spinney.embedded.apiserver.resources.resourceclaims import DEVICE_CLASSES
from spinney.scheduler.intake.extended_resources import classes_by_resource, needs_devices, requests_of
from tests import make
from tests.scheduler.service.parts import PARTS, WITH_KUBE_SCHEDULER
from tests.services.stage import stage
from tests.virtual_time import virtual

NIC = "example.com/nic"
SERVED = {NIC: "nics"}


def device_class(name: str, resource: str = "", created: str = "2026-01-01T00:00:00Z") -> DeviceClass:
    spec = {"extendedResourceName": resource}
    return convert(DeviceClass, {"metadata": {"name": name, "creationTimestamp": created}, "spec": spec})


def container(name: str, nics: int, **more: Any) -> Json:
    return {"name": name, "resources": {"requests": {"cpu": "1", NIC: str(nics)}}, **more}


def pod(containers: list[Json], init: list[Json] | None = None) -> Pod:
    return make.pod("p").spec(containers=containers, initContainers=init or []).typed(Pod)


def asked(pod: Pod) -> tuple[dict[str, int], set[tuple[str, str]]]:
    requests, mappings = requests_of(pod, [NIC], SERVED)
    counts = {request["name"]: request["exactly"]["count"] for request in requests}
    return counts, {(mapping["containerName"], mapping["requestName"]) for mapping in mappings}


def test_the_newest_class_serves_a_resource() -> None:
    """And every class serves the resource of its own name."""
    classes = classes_by_resource(
        [device_class("b", NIC), device_class("a", NIC, "2026-02-01T00:00:00Z"), device_class("c", NIC)]
    )
    assert classes[NIC] == "a"
    assert classes["deviceclass.resource.kubernetes.io/c"] == "c"
    assert classes_by_resource([device_class("b", NIC), device_class("a", NIC)])[NIC] == "a"


def test_a_plugin_of_the_kubelet_comes_first() -> None:
    """Devices are only claimed on nodes that do not offer the resource themselves."""
    plain, offering = (make.node("n").build() for _ in range(2))
    offering["status"]["allocatable"][NIC] = "4"
    wanted = pod([container("c", 1)])
    assert needs_devices(wanted, convert(Node, plain), SERVED) == [NIC]
    assert needs_devices(wanted, convert(Node, offering), SERVED) == []


def test_each_container_has_its_own_devices() -> None:
    """A request for each, named by its place, and the kubelet is told which serves which."""
    assert asked(pod([container("a", 2), container("b", 1)])) == (
        {"container-0-request-1": 2, "container-1-request-1": 1},
        {("a", "container-0-request-1"), ("b", "container-1-request-1")},
    )


def test_init_containers_use_the_devices_of_those_after_them() -> None:
    """Only what is lacking is asked for besides, once for all; sidecars have their own."""
    first, second = container("first", 2), container("second", 4)
    sidecar = container("side", 1, restartPolicy="Always")
    counts, mappings = asked(pod([container("main", 1)], [first, second, sidecar]))
    assert counts == {"container-1-request-1": 2, "container-2-request-1": 1, "container-3-request-1": 1}
    assert {request for name, request in mappings if name == "first"} == {
        "container-2-request-1",
        "container-3-request-1",
    }
    assert {request for name, request in mappings if name == "second"} == set(counts)


@pytest.fixture
def feature_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that knows extended resources of device classes; one without the feature forgets their names."""
    knowing = replace(DEVICE_CLASSES, default=only_spec)
    resources = tuple(knowing if each is DEVICE_CLASSES else each for each in registry.BUILT_IN)
    monkeypatch.setattr(registry, "BUILT_IN", resources)


@pytest.mark.usefixtures("feature_on")
@virtual
async def test_pods_get_devices_for_extended_resources() -> None:
    """Two pods share out a node's four devices; a third waits until one is gone."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        client = world.client
        for name in ("n1", "n2"):
            await world.node(name)
        selector = {"cel": {"expression": 'device.driver == "nic.example.com"'}}
        spec = {"selectors": [selector], "extendedResourceName": NIC}
        await client.create(DeviceClass, {"metadata": {"name": "nics"}, "spec": spec})
        offered = {
            "driver": "nic.example.com",
            "nodeName": "n2",
            "pool": {"name": "n2", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{number}"} for number in range(4)],
        }
        await client.create(ResourceSlice, {"metadata": {"name": "n2"}, "spec": offered})
        for name in ("a", "b", "c"):
            group = {"minMember": 1, "queue": "q"}
            await client.create(PodGroup, {"metadata": {"name": name}, "spec": group}, "default")
            built = make.pod(name).scheduler("kai-scheduler").annotate("pod-group-name", name).request(**{NIC: "2"})
            await client.create(Pod, built.build(), "default")
        await asyncio.sleep(10)
        assert await world.placed("") == {"a": "n2", "b": "n2", "c": ""}
        claims = (await client.list(ResourceClaim, "default")).items
        stored = [
            result.device
            for claim in claims
            if claim.status.allocation is not None
            for result in claim.status.allocation.devices.results
        ]
        assert sorted(stored) == ["d0", "d1", "d2", "d3"]
        claimed = (await client.get(Pod, ("default", "a"))).status.extended_resource_claim_status
        assert claimed is not None
        assert claimed.resource_claim_name in {claim.name for claim in claims}
        await client.delete(Pod, ("default", "a"), grace_seconds=0)
        await client.delete(ResourceClaim, ("default", claimed.resource_claim_name))
        await asyncio.sleep(600)
        assert await world.placed("c") == {"c": "n2"}
