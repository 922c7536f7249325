"""Every write of the operator: created once, deleted for sure, what pods wait for first and status last."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeVar

from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueScalingGroup
from spinney.api.meta import Json, Object
from spinney.api.owners import controller_of
from spinney.api.podgang import PodGang
from spinney.kube.client.client import Client, Patch
from spinney.kube.client.flow import Priority
from spinney.kube.errors import AlreadyExists, Conflict, NotFound, Status

T = TypeVar("T", bound=Object)


# Pods cannot be made before these are.
_BEFORE_PODS = (PodCliqueScalingGroup, PodClique, PodGang, Pod)


class NameTaken(AlreadyExists):
    """An object of the name we need exists and belongs to someone else."""

    def __init__(self, kind: str, namespace: str, name: str) -> None:
        message = (
            f"{kind} {namespace}/{name} exists and belongs to someone else; delete or rename it, or rename the set"
        )
        super().__init__(Status(status="Failure", reason="AlreadyExists", code=409, message=message))


class Writer:
    """The verbs the operator writes with."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def late(self) -> AbstractAsyncContextManager[None]:
        """A block whose writes, one after the other, come when nothing more urgent waits."""
        return self._client.turn(Priority.STATUS)

    async def create(self, of: type[T], body: Json) -> T:
        """A new object, or the one of that name if it already has the owner we would give it."""
        metadata = body["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        async with self._client.turn(Priority.POD if of in _BEFORE_PODS else Priority.NORMAL):
            try:
                return await self._client.create(of, body, namespace)
            except AlreadyExists:
                found = await self._client.get(of, (namespace, name))
        owner = controller_of(found.metadata)
        if owner is None or owner.uid != metadata["ownerReferences"][0]["uid"]:
            raise NameTaken(of.resource.kind, namespace, name)
        return found

    async def patch(self, found: T, patch: Mapping[str, Any], *, subresource: str = "") -> T | None:
        """A merge patch; None where the object is gone."""
        try:
            return await self._client.patch(type(found), found.key, patch, subresource=subresource)
        except NotFound:
            return None

    async def patch_status(self, found: T, status: Json, *, guarded: bool = False) -> T | None:
        """A merge patch of the status; `guarded` refuses if anyone wrote since we read."""
        metadata = {"metadata": {"resourceVersion": found.metadata.resource_version}} if guarded else {}
        return await self.patch(found, {**metadata, "status": status}, subresource="status")

    async def release_pod(self, pod: Pod, patch: Json) -> None:
        """A strategic patch, which costs the server the least, of a pod that may be gone."""
        with suppress(NotFound):
            await self._client.patch(Pod, pod.key, patch, kind=Patch.STRATEGIC)

    async def delete(self, found: Object, *, finalizer: str = "") -> None:
        """This very object, by UID; our finalizer goes first, so that nothing waits for us."""
        if finalizer and finalizer in found.metadata.finalizers:
            await self.release(found, finalizer)
        await self._delete(found)

    async def delete_unchanged(self, found: Object) -> None:
        """This very object, unless somebody wrote it since we read it."""
        await self._delete(found, resource_version=found.metadata.resource_version)

    async def _delete(self, found: Object, *, resource_version: str = "") -> None:
        if found.metadata.deletion_timestamp is not None:
            return
        # Others wait for the room that pods leave.
        async with self._client.turn(Priority.POD if isinstance(found, Pod) else Priority.NORMAL):
            with suppress(NotFound, Conflict):
                await self._client.delete(
                    type(found),
                    found.key,
                    uid=found.uid,
                    resource_version=resource_version,
                    propagation="Background",
                )

    async def release(self, found: Object, finalizer: str) -> None:
        """Take our finalizer off an object."""
        if finalizer not in found.metadata.finalizers:
            return
        left = [name for name in found.metadata.finalizers if name != finalizer]
        # The UID is a precondition: a new object of the same name keeps its finalizer.
        await self.patch(found, {"metadata": {"uid": found.uid, "finalizers": left or None}})
