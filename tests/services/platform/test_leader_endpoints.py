"""The Service of a scheduler with replicas leads to the one that works."""

from __future__ import annotations

import asyncio

import pytest

from spinney.api.coordination import Lease
from spinney.api.core import Pod, Service
from spinney.api.discovery import EndpointSlice
from spinney.api.kai import Config
from spinney.api.meta import Json
from spinney.api.schedulerfile import SchedulerFile
from spinney.scheduler.service.component import lease_name
from tests import make
from tests.services.platform.installation import NAMESPACE, platform
from tests.services.stage import Stage
from tests.virtual_time import virtual

NAME = "kai-scheduler-default"


async def replica(held: Stage, name: str, address: str) -> None:
    """A pod of the scheduler that runs."""
    await held.client.create(Pod, make.pod(name, NAMESPACE).build(), NAMESPACE)
    status = {"podIP": address, "podIPs": [{"ip": address}], "phase": "Running"}
    await held.client.patch(Pod, (NAMESPACE, name), {"status": status}, subresource="status")


async def leads(held: Stage, holder: str) -> None:
    """Somebody takes the lease."""
    spec = {"holderIdentity": holder}
    if await held.gone(Lease.resource, "kai-scheduler", NAMESPACE):
        await held.client.create(Lease, {"metadata": {"name": "kai-scheduler"}, "spec": spec}, NAMESPACE)
    else:
        await held.client.patch(Lease, (NAMESPACE, "kai-scheduler"), {"spec": spec})
    await asyncio.sleep(6)


async def endpoints(held: Stage) -> Json:
    """What the Service leads to."""
    endpoint_slice: Json = await held.client.get(EndpointSlice.resource, (NAMESPACE, f"{NAME}-leader"))
    return endpoint_slice


@virtual
async def test_the_service_follows_the_leader() -> None:
    """With replicas the Service selects nobody: its endpoints are the holder of the lease, and nobody without one."""
    async with platform({"scheduler": {"replicas": 2}}) as held:
        service = await held.client.get(Service, (NAMESPACE, NAME))
        assert not service.spec.selector
        assert not (await endpoints(held)).get("endpoints")
        await replica(held, "a", "10.0.0.1")
        await replica(held, "b", "10.0.0.2")
        await leads(held, "a_1234")
        endpoint_slice = await endpoints(held)
        assert [each["addresses"] for each in endpoint_slice["endpoints"]] == [["10.0.0.1"]]
        assert endpoint_slice["ports"][0] | {"protocol": "TCP"} == {
            "name": "http-metrics",
            "port": 8080,
            "protocol": "TCP",
        }
        assert endpoint_slice["metadata"]["labels"]["kubernetes.io/service-name"] == NAME
        await leads(held, "b_5678")
        assert [each["addresses"] for each in (await endpoints(held))["endpoints"]] == [["10.0.0.2"]]
        await held.client.delete(Pod, (NAMESPACE, "b"), grace_seconds=0)
        await asyncio.sleep(6)
        assert not (await endpoints(held)).get("endpoints")


@virtual
async def test_a_leader_that_stays_costs_no_writes() -> None:
    """Looking again changes nothing."""
    async with platform({"scheduler": {"replicas": 2}}) as held:
        await replica(held, "a", "10.0.0.1")
        await leads(held, "a_1234")
        written: list[str] = []
        held.transport.fault = lambda request: written.append(f"{request.method} {request.path}")
        await asyncio.sleep(60)
        assert written == []


@virtual
async def test_one_replica_needs_no_leader() -> None:
    """Back at one replica the Service selects it by label, and the endpoints that we kept go."""
    async with platform({"scheduler": {"replicas": 2}}) as held:
        assert (await held.client.get(Service, (NAMESPACE, NAME))).spec.selector == {}
        await held.client.patch(Config, "kai-config", {"spec": {"scheduler": {"replicas": 1}}})
        await asyncio.sleep(6)
        assert (await held.client.get(Service, (NAMESPACE, NAME))).spec.selector == {"app": NAME}
        assert await held.gone(EndpointSlice.resource, f"{NAME}-leader", NAMESPACE)


@pytest.mark.parametrize(
    ("pool", "name"),
    [("", "kai-scheduler"), ("blue", "kai-scheduler-blue"), ("Blue_1", "kai-scheduler-blue-1-20c6c1d9")],
)
def test_every_pool_has_a_lease(pool: str, name: str) -> None:
    """Under upstream's name, or under one that an object can have."""
    assert lease_name(SchedulerFile(scheduler_name="kai-scheduler", partition_label_value=pool)) == name
