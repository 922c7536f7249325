"""Device claims: allocated and reserved for a pod before it is bound."""

from __future__ import annotations

import msgspec

from spinney.api.core import Pod
from spinney.api.kai import ClaimAllocation
from spinney.api.meta import Json
from spinney.api.resource import ResourceClaim
from spinney.kube.client.client import Client
from spinney.kube.errors import Conflict
from spinney.services.binder.bind import Bind, BindError
from spinney.services.pods.claims import claim_name

# Pods that share a claim write the same list concurrently.
_MOST_CONFLICTS = 10


class Claims:
    """Writes the scheduler's allocations into the claims, each with the pod as a consumer."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def concerns(self, bind: Bind) -> bool:
        """Binds with claim allocations."""
        return bool(bind.request.spec.resource_claim_allocations)

    async def do(self, bind: Bind) -> None:
        """Allocate and reserve each claim."""
        for decided in bind.request.spec.resource_claim_allocations:
            name = claim_name(bind.pod, decided.name)
            if name is None:
                raise BindError(f"the pod's claim {decided.name} has not been made yet")
            await self._reserve(bind.pod, name, decided)

    async def undo(self, bind: Bind) -> None:
        """Remove the reservation of this bind, and the allocation if nobody else uses it."""
        for decided in bind.request.spec.resource_claim_allocations:
            name = claim_name(bind.pod, decided.name)
            if name is not None:
                await self._release(bind.pod, name)

    async def _reserve(self, pod: Pod, name: str, decided: ClaimAllocation) -> None:
        for _ in range(_MOST_CONFLICTS):
            claim = await self._get(pod, name)
            status = claim.status
            consumers: list[Json] = [msgspec.to_builtins(consumer) for consumer in status.reserved_for]
            others = [consumer for consumer in consumers if consumer["uid"] != pod.uid]
            held = msgspec.to_builtins(status.allocation) if status.allocation is not None else None
            wanted = msgspec.to_builtins(decided.allocation) if decided.allocation is not None else held
            if held == wanted and len(others) < len(consumers):
                return
            # A claim that only this pod uses was reserved by an earlier bind that could not be undone.
            ours = bool(consumers) and not others
            if held not in (None, wanted) and not ours:
                raise BindError(f"claim {name} was allocated otherwise in the meantime")
            patch: Json = {"reservedFor": [*others, {"resource": "pods", "name": pod.name, "uid": pod.uid}]}
            if held != wanted:
                patch["allocation"] = wanted
            if await self._write(claim, patch):
                return
        raise BindError(f"claim {name} was changed by others {_MOST_CONFLICTS} times in a row")

    async def _release(self, pod: Pod, name: str) -> None:
        for _ in range(_MOST_CONFLICTS):
            try:
                claim = await self._get(pod, name)
            except BindError:
                return
            others = [
                msgspec.to_builtins(consumer) for consumer in claim.status.reserved_for if consumer.uid != pod.uid
            ]
            if len(others) == len(claim.status.reserved_for):
                return
            patch: Json = {"reservedFor": others or None}
            if not others:
                patch["allocation"] = None
            if await self._write(claim, patch):
                return

    async def _get(self, pod: Pod, name: str) -> ResourceClaim:
        claim = await self._client.find(ResourceClaim, (pod.namespace, name))
        if claim is None:
            raise BindError(f"claim {name} is not there")
        return claim

    async def _write(self, claim: ResourceClaim, status: Json) -> bool:
        patch = {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}
        try:
            await self._client.patch(ResourceClaim, claim.key, patch, subresource="status")
        except Conflict:
            return False
        return True
