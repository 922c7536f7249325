"""Writes that tolerate races: an object of ours that exists is taken, one that is gone stays gone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any, TypeVar, overload

from spinney.api.meta import Json, Key, Object, Resource
from spinney.kube.client.client import Client, Patch
from spinney.kube.client.flow import Priority
from spinney.kube.desired import Step, Wanted, owner_uids, plan
from spinney.kube.errors import AlreadyExists, Conflict, Invalid, NotFound, Status
from spinney.kube.shared_reads import SharedReads

T = TypeVar("T", bound=Object)
Kind = type[Object] | Resource


class Blocked(Exception):
    """A wanted object cannot exist for now; the message says why."""


class NameTaken(AlreadyExists):
    """An object of the wanted name exists and belongs to someone else."""

    def __init__(self, kind: str, key: Key) -> None:
        name = "/".join(filter(None, key))
        message = f"{kind} {name} exists and belongs to someone else; delete or rename it, or rename what needs it"
        super().__init__(Status(status="Failure", reason="AlreadyExists", code=409, message=message))


class Writer:
    """Applies planned steps, and single writes.

    `priority` says for "create" or "delete" of a kind how urgent it is; None leaves it to the kind of request.
    """

    def __init__(self, client: Client, priority: Callable[[str, Kind], Priority | None] = lambda _, __: None) -> None:
        self._client = client
        self._priority = priority
        self._reads = SharedReads(client)

    async def apply(self, step: Step) -> Json | None:
        """Apply a planned step; returns the object as it is now, or None after a deletion or a report."""
        if step.act == "wait":
            raise Blocked(step.why)
        if step.act == "report":
            return None
        if step.act == "create":
            return await self.create(step.resource, step.body, adopt=step.adopt)
        if step.act == "patch":
            return await self._client.patch(step.resource, step.key, guarded(step.body, step.resource_version))
        if step.act == "apply":
            return await self._client.patch(step.resource, step.key, step.body, kind=Patch.APPLY, force=True)
        await self._delete(step.resource, step.key, step.uid, step.resource_version)
        return await self._client.create(step.resource, step.body, step.key[0]) if step.act == "recreate" else None

    async def ensure(self, wanted: Wanted) -> bool:
        """Read the live object and make it match; True if something was written."""
        step = plan(wanted, await self._client.find(wanted.resource, wanted.key))
        if step is not None:
            await self.apply(step)
        return step is not None

    @overload
    async def create(self, of: type[T], body: Json, *, adopt: bool = False) -> T: ...
    @overload
    async def create(self, of: Resource, body: Json, *, adopt: bool = False) -> Json: ...
    async def create(self, of: type[T] | Resource, body: Json, *, adopt: bool = False) -> T | Json:
        """Create an object, or return the existing one if it has an owner that the body names; `adopt` takes any."""
        metadata = body["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        async with self._turn("create", of):
            try:
                return await self._client.create(of, body, key[0])
            except AlreadyExists:
                existing: T | Json = await self._client.get(of, key)
        owners = owner_uids(body)
        if owners and not adopt and owners.isdisjoint(_live_owner_uids(existing)):
            raise NameTaken((of if isinstance(of, Resource) else of.resource).kind, key)
        return existing

    async def confirm(self, cached: Object) -> None:
        """Raise a Conflict if an object is gone or its spec has changed since it was cached."""
        live = await self._reads.metadata(type(cached), cached.key)
        if live is None or (live.uid, live.generation) != (cached.uid, cached.metadata.generation):
            message = f"{cached.resource.kind} {'/'.join(filter(None, cached.key))} has changed meanwhile"
            raise Conflict(Status(status="Failure", reason="Conflict", code=409, message=message))

    async def patch(
        self,
        live: T,
        patch: Mapping[str, Any],
        *,
        kind: Patch = Patch.MERGE,
        subresource: str = "",
        unchanged: bool = False,
    ) -> T | None:
        """Change an object; None where it is gone. With `unchanged`, only if nobody changed it since it was read."""
        patch = guarded(patch, live.metadata.resource_version) if unchanged else patch
        try:
            return await self._client.patch(type(live), live.key, patch, kind=kind, subresource=subresource)
        except NotFound:
            return None

    async def delete(self, live: Object, *, unchanged: bool = False) -> None:
        """Delete this object by UID; with `unchanged`, only if nobody changed it since it was read."""
        if live.metadata.deletion_timestamp is not None:
            return
        version = live.metadata.resource_version if unchanged else ""
        with suppress(Conflict):
            await self._delete(type(live), live.key, live.uid, version)

    async def release(self, live: Object, finalizer: str) -> None:
        """Remove a finalizer from this object; a Conflict where others have removed theirs meanwhile."""
        if finalizer not in live.metadata.finalizers:
            return
        if live.metadata.deletion_timestamp is not None and len(live.metadata.finalizers) == 1:
            # Nobody can add one to an object that is being deleted, and this patch is cheaper for the server.
            await self.patch(live, {"metadata": {"uid": live.uid, "finalizers": None}})
            return
        place = f"/metadata/finalizers/{live.metadata.finalizers.index(finalizer)}"
        # A merge patch would replace the list, and with it finalizers that others have just added.
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": live.uid},
            {"op": "test", "path": place, "value": finalizer},
            {"op": "remove", "path": place},
        ]
        try:
            await self._client.patch(type(live), live.key, patch, kind=Patch.JSON)
        except NotFound:
            return
        except Invalid as error:
            raise Conflict(error.status) from error

    async def _delete(self, of: Kind, key: Key, uid: str, resource_version: str = "") -> None:
        async with self._turn("delete", of):
            with suppress(NotFound):
                await self._client.delete(of, key, uid=uid, resource_version=resource_version, propagation="Background")

    def _turn(self, verb: str, of: Kind) -> AbstractAsyncContextManager[None]:
        priority = self._priority(verb, of)
        return nullcontext() if priority is None else self._client.turn(priority)


def guarded(patch: Mapping[str, Any], resource_version: str) -> Mapping[str, Any]:
    """A patch that fails where the object has another version; any will do without one."""
    if not resource_version:
        return patch
    return {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": resource_version}}


def _live_owner_uids(live: Object | Json) -> Collection[str]:
    if isinstance(live, dict):
        return owner_uids(live)
    return {owner.uid for owner in live.metadata.owner_references}
