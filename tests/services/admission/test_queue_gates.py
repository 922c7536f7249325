"""The queue gate: who is let through, and what counts towards a queue's limits."""

from __future__ import annotations

import asyncio

import pytest

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.api.resource import ResourceClaim, ResourceClaimTemplate
from spinney.services.admission.component import COMPONENT as ADMISSION
from spinney.services.admission.settings import AdmissionSettings
from tests import make
from tests.services.stage import Stage, stage
from tests.virtual_time import virtual

GATING = ((ADMISSION, AdmissionSettings(gate_blocked_pods=True)),)


def wish(count: int, device_class: str = "gpu.nvidia.com") -> Json:
    """The spec of a claim."""
    exactly = {"deviceClassName": device_class, "count": count, "allocationMode": "ExactCount"}
    return {"devices": {"requests": [{"name": "devices", "exactly": exactly}]}}


async def gated(world: Stage, name: str, gpus: int = 0, **claim: str) -> None:
    """A pod behind the gate, as admission creates it."""
    built = make.pod(name).scheduler("kai-scheduler").label(labels.QUEUE, "small")
    body = (built.gpus(gpus) if gpus else built).build()
    body["spec"]["schedulingGates"] = [{"name": labels.QUEUE_GATE}]
    if claim:
        body["spec"]["resourceClaims"] = [{"name": "devices", **claim}]
    await world.client.create(Pod, body, "default")
    # Creation times are whole seconds, and the oldest goes first.
    await asyncio.sleep(1)


async def waiting(world: Stage) -> set[str]:
    """The pods that are still gated."""
    return {pod.name for pod in (await world.client.list(Pod, "default")).items if pod.spec.scheduling_gates}


@virtual
async def test_the_oldest_go_first_and_the_next_when_there_is_room() -> None:
    """Limits of the queues above count too; a finished pod holds nothing."""
    async with stage(*GATING) as world:
        await world.queue("parent", limit=2)
        await world.queue("small", "parent", limit=3)
        for name in ("b", "a", "c"):
            await gated(world, name, gpus=1)
        await asyncio.sleep(2)
        assert await waiting(world) == {"c"}
        await world.client.patch(Pod, ("default", "b"), {"status": {"phase": "Succeeded"}}, subresource="status")
        await asyncio.sleep(2)
        assert await waiting(world) == set()


@pytest.mark.parametrize(("device_class", "stays"), [("gpu.nvidia.com", {"b"}), ("nics", set())])
@virtual
async def test_claimed_gpus_count(device_class: str, stays: set[str]) -> None:
    """Two pods with a claim of two GPUs each do not fit into three; other devices are no matter of queues."""
    async with stage(*GATING) as world:
        await world.queue("small", limit=3)
        for name in ("a", "b"):
            body = {"metadata": {"name": name}, "spec": wish(2, device_class)}
            await world.client.create(ResourceClaim, body, "default")
            await gated(world, name, resourceClaimName=name)
        await asyncio.sleep(2)
        assert await waiting(world) == stays


@virtual
async def test_a_shared_claim_counts_once() -> None:
    """However many pods use it."""
    async with stage(*GATING) as world:
        await world.queue("small", limit=2)
        await world.client.create(ResourceClaim, {"metadata": {"name": "c"}, "spec": wish(2)}, "default")
        for name in ("a", "b"):
            await gated(world, name, resourceClaimName="c")
        await gated(world, "whole", gpus=1)
        await asyncio.sleep(2)
        assert await waiting(world) == {"whole"}


@virtual
async def test_a_claim_that_is_still_to_be_made_counts_by_its_template() -> None:
    """Nobody has to make the claims of pods that wait; a template that changes is looked at again."""
    async with stage(*GATING) as world:
        await world.queue("small", limit=3)
        body: Json = {"metadata": {"name": "t"}, "spec": {"spec": wish(2)}}
        await world.client.create(ResourceClaimTemplate, body, "default")
        for name in ("a", "b"):
            await gated(world, name, resourceClaimTemplateName="t")
        await asyncio.sleep(2)
        assert await waiting(world) == {"b"}
        await world.client.delete(ResourceClaimTemplate, ("default", "t"))
        await world.client.create(ResourceClaimTemplate, {**body, "spec": {"spec": wish(1)}}, "default")
        await asyncio.sleep(2)
        assert await waiting(world) == set()
