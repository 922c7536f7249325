"""Extended resources backed by devices (KEP-5004): a claim per pod, allocated before the pod is bound."""

from __future__ import annotations

import hashlib
from contextlib import suppress

import msgspec

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.kai import ExtendedClaimAllocation
from spinney.api.meta import Json
from spinney.api.owners import controller_reference
from spinney.api.resource import ResourceClaim
from spinney.kube.client.client import Client
from spinney.kube.errors import AlreadyExists, Conflict, NotFound
from spinney.services.binder.bind import Bind, BindError


def extended_claim_name(pod: Pod) -> str:
    """The claim's name; the same for every attempt to bind a pod."""
    ending = f"-extended-resources-{hashlib.sha256(pod.uid.encode()).hexdigest()[:5]}"
    return f"{pod.name[: 253 - len(ending)]}{ending}"


class ExtendedClaims:
    """Creates and allocates the claim, and writes its name into the pod's status for the kubelet."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def concerns(self, bind: Bind) -> bool:
        """Binds whose extended resources are devices."""
        return bind.request.spec.extended_resource_claim_allocation is not None

    async def do(self, bind: Bind) -> None:
        """Create the claim if needed, allocate and reserve it, and write its name into the pod's status."""
        decided = bind.request.spec.extended_resource_claim_allocation
        assert decided is not None
        if decided.allocation is None:
            raise BindError("the decision brings no allocation for the pod's extended resources")
        claim = await self._claim(bind.pod, decided)
        await self._allocate(bind.pod, claim, decided)
        mappings = [msgspec.to_builtins(mapping) for mapping in decided.container_mappings]
        status = {"resourceClaimName": claim.name, "requestMappings": mappings}
        await self._write_status(bind.pod, status)

    async def undo(self, bind: Bind) -> None:
        """Delete the claim, which is for this bind alone, and remove it from the pod's status."""
        claim = await self._client.find(ResourceClaim, (bind.pod.namespace, extended_claim_name(bind.pod)))
        if claim is None:
            return
        if any(consumer.uid == bind.pod.uid for consumer in claim.status.reserved_for):
            patch = {"status": {"reservedFor": None, "allocation": None}}
            await self._client.patch(ResourceClaim, claim.key, patch, subresource="status")
        with suppress(NotFound):
            await self._client.delete(ResourceClaim, claim.key, uid=claim.uid)
            await self._write_status(bind.pod, None)

    async def _claim(self, pod: Pod, decided: ExtendedClaimAllocation) -> ResourceClaim:
        name = extended_claim_name(pod)
        body: Json = {
            "metadata": {
                "name": name,
                "annotations": {labels.EXTENDED_RESOURCE_CLAIM: "true"},
                "ownerReferences": [controller_reference(pod)],
            },
            "spec": {"devices": {"requests": [msgspec.to_builtins(each) for each in decided.device_requests]}},
        }
        try:
            return await self._client.create(ResourceClaim, body, pod.namespace)
        except AlreadyExists:
            return await self._client.get(ResourceClaim, (pod.namespace, name))

    async def _allocate(self, pod: Pod, claim: ResourceClaim, decided: ExtendedClaimAllocation) -> None:
        allocated = msgspec.to_builtins(claim.status.allocation) if claim.status.allocation is not None else None
        reserved = any(consumer.uid == pod.uid for consumer in claim.status.reserved_for)
        if reserved and allocated == msgspec.to_builtins(decided.allocation):
            return
        status: Json = {
            "allocation": msgspec.to_builtins(decided.allocation),
            "reservedFor": [{"resource": "pods", "name": pod.name, "uid": pod.uid}],
        }
        patch = {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}
        try:
            await self._client.patch(ResourceClaim, claim.key, patch, subresource="status")
        except Conflict:
            raise BindError(f"claim {claim.name} was changed by somebody else") from None

    async def _write_status(self, pod: Pod, status: Json | None) -> None:
        patch = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": status}}
        await self._client.patch(Pod, pod.key, patch, subresource="status")
