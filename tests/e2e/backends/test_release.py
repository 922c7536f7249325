"""The release discipline of kube-scheduler 1.35 over hours of virtual time, with a scheduler that never binds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from spinney.api.conditions import find
from spinney.api.core import PersistentVolume, PersistentVolumeClaim
from spinney.api.crd import crds
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Condition
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.resource import ResourceClaim
from spinney.backends.component import COMPONENT as BACKENDS
from spinney.backends.component import BackendsConfig
from spinney.embedded.cluster import Cluster
from spinney.embedded.nodes.profile import Profile
from spinney.grove.component import COMPONENT as GROVE
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client, Patch
from spinney.kube.controllers.host import Host
from spinney.sim.loop import clock
from tests import make
from tests.backends import live
from tests.virtual_time import virtual

ODD = {"deviceClassName": "odd.example.com", "allocationMode": "ExactCount", "count": 1}


@asynccontextmanager
async def operator(nodes: Profile) -> AsyncIterator[Client]:
    """The operator and the default backend on an embedded cluster that no scheduler serves."""
    async with Cluster(nodes=nodes, clock=clock(), chance=Chance(3)) as cluster:
        client = cluster.client()
        await live.install(client, crds(["grove.io", "scheduler.grove.io"]))
        config = GROVE.settings() if GROVE.settings else None
        components = [(GROVE, config), (BACKENDS, BackendsConfig(only=("default",)))]
        host = Host(client, cluster.clock, components)
        life = asyncio.create_task(host.run())
        await host.ready.wait()
        yield client
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


async def told(client: Client, gang: str) -> Condition:
    """What the backend says about a gang."""
    condition = find((await client.get(PodGang, ("default", gang))).status.conditions, "BackendReady")
    assert condition is not None
    return condition


async def pods(client: Client, gang: str) -> list[Pod]:
    """The pods of a gang."""
    return (await client.list(Pod, "default", labels=f"grove.io/podgang={gang}")).items


async def refuse(client: Client, gang: str) -> None:
    """A scheduler's answer: it looks at the pods and finds no node."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}
    for pod in await pods(client, gang):
        patch = {"status": {"conditions": [condition]}}
        await client.patch(Pod, ("default", pod.name), patch, kind=Patch.STRATEGIC, subresource="status")


def training(name: str, **spec: object) -> dict[str, object]:
    """Two pods with all GPUs of a node each."""
    resources = {"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}}
    container = {"name": "main", "image": "busybox", "resources": resources}
    return make.pcs(name).clique("workers", 2, 2, containers=[container], **spec).build()


@virtual
async def test_a_gang_that_is_never_bound_is_made_anew_three_times_and_then_waits() -> None:
    """Five minutes each time, with longer rests between; meanwhile another gang gets its turn."""
    async with operator(Profile(count=2, gpus=8, racks=1, blocks=1)) as client:
        await client.create(PodCliqueSet, training("never"), "default")
        await asyncio.sleep(10)
        for attempt in range(1, 4):
            assert (await told(client, "never-0")).reason == "Released", attempt
            before = {pod.uid for pod in await pods(client, "never-0")}
            assert not any(pod.spec.scheduling_gates for pod in await pods(client, "never-0"))
            await refuse(client, "never-0")
            await asyncio.sleep(310)
            gang = await client.get(PodGang, ("default", "never-0"))
            assert len(gang.metadata.annotations["grove.io/release-attempts"].split()) == attempt
            again = await pods(client, "never-0")
            assert len(again) == 2
            assert not before & {pod.uid for pod in again}
            assert all(pod.spec.scheduling_gates for pod in again)
            await asyncio.sleep(60 * 2 ** (attempt - 1))
        assert (await told(client, "never-0")).reason == "NeverBound"
        assert all(pod.spec.scheduling_gates for pod in await pods(client, "never-0"))


@virtual
async def test_who_waits_gets_the_turn_that_another_gave_up() -> None:
    """The second gang is let go as soon as the first is taken back."""
    async with operator(Profile(count=2, gpus=8, racks=1, blocks=1)) as client:
        await client.create(PodCliqueSet, training("first"), "default")
        await asyncio.sleep(10)
        await client.create(PodCliqueSet, training("second"), "default")
        await asyncio.sleep(10)
        await refuse(client, "first-0")
        assert (await told(client, "first-0")).reason == "Released"
        assert (await told(client, "second-0")).reason == "WaitsForOtherGang"
        await asyncio.sleep(310)
        assert (await told(client, "second-0")).reason == "Released"
        assert (await told(client, "first-0")).reason in ("Recreated", "WaitsForOtherGang")


@virtual
async def test_what_the_fit_check_cannot_see_costs_five_minutes_and_no_more() -> None:
    """A gang is let go whose devices nobody has: it is taken back whole, and the next gang is not held up for good."""
    async with operator(Profile(count=2, gpus=8, racks=1, blocks=1)) as client:
        claim = {"metadata": {"name": "odd"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": ODD}]}}}
        await client.create(ResourceClaim, claim, "default")
        devices = [{"name": "odd", "resourceClaimName": "odd"}]
        await client.create(PodCliqueSet, training("blind", resourceClaims=devices), "default")
        await asyncio.sleep(10)
        assert (await told(client, "blind-0")).reason == "Released"
        await refuse(client, "blind-0")
        await client.create(PodCliqueSet, training("next"), "default")
        await asyncio.sleep(310)
        assert all(pod.spec.scheduling_gates for pod in await pods(client, "blind-0"))
        assert (await told(client, "next-0")).reason == "Released"


@virtual
async def test_a_claim_that_is_missing_keeps_a_gang_at_its_gate_until_it_is_there() -> None:
    """kube-scheduler would refuse the pods: the gang says which claim it waits for, and goes when it comes."""
    async with operator(Profile(count=2, gpus=8, racks=1, blocks=1)) as client:
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        await client.create(PodCliqueSet, training("stored", volumes=[volume]), "default")
        await asyncio.sleep(10)
        condition = await told(client, "stored-0")
        assert condition.reason == "DoesNotFitYet"
        assert condition.message.endswith('stored-0-workers: persistentvolumeclaim "data" not found')
        disk = {"capacity": {"storage": "1"}, "accessModes": ["ReadWriteMany"], "nfs": {"server": "s", "path": "/"}}
        await client.create(PersistentVolume, {"metadata": {"name": "disk"}, "spec": disk})
        spec = {"volumeName": "disk", "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1"}}}
        await client.create(PersistentVolumeClaim, {"metadata": {"name": "data"}, "spec": spec}, "default")
        await asyncio.sleep(10)
        assert (await told(client, "stored-0")).reason == "Released"


@virtual
async def test_a_scheduler_that_does_not_run_is_told_after_half_a_minute() -> None:
    """The gang says so, and its pods stay as they are: making them anew would not help."""
    async with operator(Profile(count=2, gpus=8, racks=1, blocks=1)) as client:
        await client.create(PodCliqueSet, training("alone"), "default")
        await asyncio.sleep(10)
        before = {pod.uid for pod in await pods(client, "alone-0")}
        await asyncio.sleep(40)
        condition = await told(client, "alone-0")
        assert condition.reason == "SchedulerSilent"
        assert "without a sign of life from their scheduler 'default-scheduler'" in condition.message
        await asyncio.sleep(3600)
        assert {pod.uid for pod in await pods(client, "alone-0")} == before
