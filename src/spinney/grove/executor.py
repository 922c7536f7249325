"""Applies changes to the cluster: what pods wait for first, status last."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress

from spinney.api.core import Pod, Secret
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json, Object
from spinney.api.podgang import PodGang
from spinney.api.resource import ResourceClaim, ResourceClaimTemplate
from spinney.grove.model.changes import (
    Change,
    Confirm,
    Create,
    CreateClaims,
    Delete,
    Patch,
    PatchStatus,
    RecordEvent,
    RemoveFinalizer,
    RemoveGates,
)
from spinney.grove.model.resource_sharing import claim_body
from spinney.kube.client.client import Client
from spinney.kube.client.client import Patch as PatchKind
from spinney.kube.client.flow import Priority
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import AlreadyExists, ApiError
from spinney.kube.parallel import all_of
from spinney.kube.writer import Kind, Writer

# Called with every object that the API server returned.
Stored = Callable[[Object], None]
# Called with a creation that failed.
Failed = Callable[[Create, ApiError], None]

# Pods cannot be created before these are.
_BEFORE_PODS = (PodCliqueScalingGroup, PodClique, PodGang, Pod)


class Executor:
    """Applies the changes of plans."""

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._client = client
        self._writer = Writer(client, _priority)
        self._recorder = recorder

    def at_status_priority(self) -> AbstractAsyncContextManager[None]:
        """A block whose writes, one after the other, come when nothing more urgent waits."""
        return self._client.turn(Priority.STATUS)

    async def apply(
        self, changes: Iterable[Change], stored: Stored = lambda item: None, failed: Failed = lambda create, error: None
    ) -> None:
        """Make changes together; the first error is raised when all are done."""
        await all_of([self._apply(change, stored, failed) for change in changes])

    async def _apply(self, change: Change, stored: Stored, failed: Failed) -> None:
        result: Object | None = None
        match change:
            case Create() if change.kind is Secret:
                await self._create_secret(change)
            case Create():
                result = await self._create(change, failed)
            case CreateClaims():
                await self._create_claims(change)
            case Confirm():
                await self._writer.confirm(change.stored)
            case Patch():
                result = await self._writer.patch(change.stored, change.patch, unchanged=change.guarded)
            case PatchStatus():
                await self._patch_status(change)
            case RemoveGates():
                await self._remove_gates(change)
            case RemoveFinalizer():
                await self._writer.release(change.stored, change.finalizer)
            case Delete():
                # Ahead of the deletion, so that it waits for nobody.
                await self._writer.release(change.stored, change.finalizer)
                await self._writer.delete(change.stored, unchanged=change.unchanged)
            case RecordEvent():
                self._recorder.event(change.about, change.type, change.reason, change.message)
        if result is not None:
            stored(result)

    async def _create(self, change: Create, failed: Failed) -> Object:
        try:
            return await self._writer.create(change.kind, change.body)
        except ApiError as error:
            failed(change, error)
            raise

    async def _create_secret(self, change: Create) -> None:
        """Create a Secret; one of that name counts as ours, since we may not read Secrets."""
        with suppress(AlreadyExists):
            await self._client.create(Secret, change.body, change.body["metadata"]["namespace"])

    async def _patch_status(self, change: PatchStatus) -> None:
        status = {"status": change.patch}
        await self._writer.patch(change.stored, status, subresource="status", unchanged=change.guarded)

    async def _remove_gates(self, change: RemoveGates) -> None:
        """Use a strategic patch, which costs the server the least; the UID is a precondition."""
        gates = [{"$patch": "delete", "name": name} for name in change.gates]
        confined = {"nodeSelector": dict(change.node_selector)} if change.node_selector else {}
        patch = {"metadata": {"uid": change.pod.uid}, "spec": {"schedulingGates": gates, **confined}}
        await self._writer.patch(change.pod, patch, kind=PatchKind.STRATEGIC)

    async def _create_claims(self, change: CreateClaims) -> None:
        templates = await self._claim_templates(change)
        bodies = [
            claim_body(change.pcs, change.index, claim, owner, templates[claim.name]) for claim, owner in change.claims
        ]
        await all_of(self._writer.create(ResourceClaim, body) for body in bodies)

    async def _claim_templates(self, change: CreateClaims) -> dict[str, Json]:
        """What each claim is made from, read as plain data: the typed set lacks fields it does not know."""
        raw = await self._client.get(PodCliqueSet.resource, change.pcs.key)
        internal = {
            template["name"]: template.get("templateSpec") or {}
            for template in raw["spec"]["template"].get("resourceClaimTemplates") or ()
        }
        templates: dict[str, Json] = {}
        for claim, _ in change.claims:
            if claim.template in internal and not claim.template_namespace:
                templates[claim.name] = internal[claim.template]
                continue
            key = (claim.template_namespace or change.pcs.namespace, claim.template)
            external = await self._client.get(ResourceClaimTemplate.resource, key)
            templates[claim.name] = external["spec"]
        return templates


def _priority(verb: str, kind: Kind) -> Priority:
    """Creations that pods wait for go first, and deletions of pods: others wait for the room that they leave."""
    first = kind in _BEFORE_PODS if verb == "create" else kind is Pod
    return Priority.POD if first else Priority.NORMAL
