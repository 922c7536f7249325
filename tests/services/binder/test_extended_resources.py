"""Extended resources that devices serve: the binder makes and allocates a claim for the pod, or leaves nothing."""

from __future__ import annotations

import asyncio

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.resource import ResourceClaim
from spinney.kube.client.transport import Request, Response
from spinney.services.binder.component import COMPONENT as BINDER
from tests.services.binder.binding import DECIDED, outcome, pod, request
from tests.services.stage import broken, stage
from tests.virtual_time import virtual


@virtual
async def test_the_claim_is_made_allocated_and_told() -> None:
    """One claim of the pod's own, allocated, reserved, owned by the pod and named in its status."""
    async with stage((BINDER, None)) as world:
        await world.node("n1")
        await request(world, await pod(world), extendedResourceClaimAllocation=DECIDED)
        await asyncio.sleep(1)
        assert (await outcome(world))[0] == "Succeeded"
        bound = await world.client.get(Pod, ("default", "p"))
        claimed = bound.status.extended_resource_claim_status
        assert claimed is not None
        assert [mapping.request_name for mapping in claimed.request_mappings] == ["gpu"]
        claim = await world.client.get(ResourceClaim, ("default", claimed.resource_claim_name))
        assert claim.metadata.annotations[labels.EXTENDED_RESOURCE_CLAIM] == "true"
        assert claim.metadata.owner_references[0].uid == bound.uid
        assert [consumer.uid for consumer in claim.status.reserved_for] == [bound.uid]
        assert claim.status.allocation is not None


@virtual
async def test_a_failed_bind_leaves_no_claim() -> None:
    """Where the binding itself is refused, the claim goes and the pod forgets it."""

    def no_bindings(request: Request) -> Response | None:
        return broken() if request.path.endswith("/binding") else None

    async with stage((BINDER, None)) as world:
        world.transport.fault = no_bindings
        await world.node("n1")
        await request(world, await pod(world), extendedResourceClaimAllocation=DECIDED)
        await asyncio.sleep(60)
        assert (await outcome(world))[::2] == ("Failed", 3)
        assert (await world.client.list(ResourceClaim, "default")).items == []
        left = (await world.client.get(Pod, ("default", "p"))).status.extended_resource_claim_status
        assert left is None
