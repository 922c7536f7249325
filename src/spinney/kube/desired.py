"""Make live objects match wanted ones: plan steps from both (pure), then apply the steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeVar, overload

from spinney.api.meta import Json, Key, Object, Resource
from spinney.kube.client.client import Client, Patch
from spinney.kube.client.flow import Priority
from spinney.kube.difference import covers, merge_patch, without_none
from spinney.kube.errors import AlreadyExists, Conflict, NotFound, Status

T = TypeVar("T", bound=Object)
Kind = type[Object] | Resource


class Drift(StrEnum):
    """What to do where a live object differs from the wanted one."""

    PATCH = "merge-patch what differs"
    # The server keeps count of what we applied, so fields that we no longer name go.
    APPLY = "server-side apply the whole object"
    # Its spec cannot change, but it can be deleted and created again.
    RECREATE = "patch metadata; where the spec differs, delete and create again"
    # It can neither change nor go while others depend on it.
    REPORT = "patch metadata; report a spec that differs"
    IGNORE = "leave it: only its existence matters"


@dataclass(frozen=True)
class Wanted:
    """One object that should exist. A None in the body stands for a field that must be absent.

    An object of that name which has none of the body's owners is somebody else's, unless `adopt` is set.
    """

    resource: Resource
    body: Json
    drift: Drift = Drift.PATCH
    # Fields that the API server drops silently where a feature gate is off; their absence is no difference.
    gated: Mapping[str, Any] = field(default_factory=dict)
    # Fields of the spec that hold one of several members, and keep the member they were created with.
    unions: frozenset[str] = frozenset()
    adopt: bool = False

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The object's namespace, empty for cluster-scoped kinds."""
        return str(self.body["metadata"].get("namespace", ""))

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.namespace, self.name


@dataclass(frozen=True)
class Step:
    """One write, or the reason why none is possible ("wait", "report").

    `uid` and `resource_version` are preconditions of a deletion.
    """

    act: Literal["create", "patch", "apply", "recreate", "delete", "wait", "report"]
    resource: Resource
    key: Key
    body: Json = field(default_factory=dict)
    uid: str = ""
    resource_version: str = ""
    adopt: bool = False
    why: str = ""


class Blocked(Exception):
    """A wanted object cannot be there for now; the message says why."""


class NameTaken(AlreadyExists):
    """An object of the wanted name exists and belongs to someone else."""

    def __init__(self, kind: str, key: Key) -> None:
        name = "/".join(filter(None, key))
        message = f"{kind} {name} exists and belongs to someone else; delete or rename it, or rename what needs it"
        super().__init__(Status(status="Failure", reason="AlreadyExists", code=409, message=message))


def plan(wanted: Wanted, live: Json | None) -> Step | None:
    """The step towards a wanted object; None where it is there as wanted."""
    if wanted.drift is Drift.APPLY:
        done = live is not None and covers(live, wanted.body)
        return None if done else Step("apply", wanted.resource, wanted.key, wanted.body)
    if live is None:
        return Step("create", wanted.resource, wanted.key, without_none(wanted.body), adopt=wanted.adopt)
    if not wanted.adopt and not _same_owner(wanted.body, live):
        return _wait(wanted, f"exists and belongs to {_owner_of(live)}; delete or rename it")
    if live["metadata"].get("deletionTimestamp"):
        return _wait(wanted, "is being deleted")
    if wanted.drift is Drift.IGNORE:
        return None
    patch = merge_patch(live, _comparable(wanted, live), wanted.gated)
    if not patch:
        return None
    if wanted.drift is Drift.PATCH or "spec" not in patch:
        return Step("patch", wanted.resource, wanted.key, patch)
    if wanted.drift is Drift.RECREATE:
        body, uid = without_none(wanted.body), live["metadata"].get("uid", "")
        return Step("recreate", wanted.resource, wanted.key, body, uid)
    why = f"{_called(wanted)} cannot change while its pods exist: {_fields(patch['spec'])}"
    return Step("report", wanted.resource, wanted.key, why=why)


def plan_pruning(wanted: Iterable[Wanted], owned: Iterable[tuple[Resource, Object]]) -> list[Step]:
    """Deletions of what an owner has and no longer wants."""
    # By kind and not by version: a server may show one object under several versions.
    kept = {(each.resource.group, each.resource.kind, each.key) for each in wanted}
    return [
        Step("delete", resource, live.key, uid=live.uid)
        for resource, live in owned
        if (resource.group, resource.kind, live.key) not in kept and live.metadata.deletion_timestamp is None
    ]


def _same_owner(body: Json, live: Json) -> bool:
    wanted = _owner_uids(body)
    return not wanted or not wanted.isdisjoint(_owner_uids(live))


def _owner_uids(body: Json) -> set[str]:
    return {owner["uid"] for owner in body["metadata"].get("ownerReferences") or ()}


def _owner_of(live: Json) -> str:
    owners = live["metadata"].get("ownerReferences") or ()
    return f"{owners[0]['kind']} {owners[0]['name']} (uid {owners[0]['uid']})" if owners else "nobody"


def _comparable(wanted: Wanted, live: Json) -> Json:
    """The wanted body without unions whose member was chosen otherwise when the object was created."""
    if not wanted.unions:
        return wanted.body
    spec, live_spec = wanted.body.get("spec") or {}, live.get("spec") or {}
    chosen = {name for name in wanted.unions if name in spec and set(live_spec.get(name) or {}) != set(spec[name])}
    return {**wanted.body, "spec": {key: value for key, value in spec.items() if key not in chosen}}


def _wait(wanted: Wanted, why: str) -> Step:
    return Step("wait", wanted.resource, wanted.key, why=f"{_called(wanted)} {why}")


def _called(wanted: Wanted) -> str:
    return f"{wanted.resource.kind} {wanted.name}"


def _fields(patch: Json, prefix: str = "spec") -> str:
    paths = []
    for key, value in patch.items():
        paths.append(_fields(value, f"{prefix}.{key}") if isinstance(value, dict) else f"{prefix}.{key} → {value}")
    return ", ".join(paths)


class Writer:
    """Writes that bear races: what exists already and is ours is taken, what is gone stays gone.

    `priority` says for "create" or "delete" of a kind how urgent it is; None leaves it to the kind of request.
    """

    def __init__(self, client: Client, priority: Callable[[str, Kind], Priority | None] = lambda _, __: None) -> None:
        self._client = client
        self._priority = priority

    async def apply(self, step: Step) -> Json | None:
        """Do a planned step: the object as it is now, or None where there is nothing to show."""
        if step.act == "wait":
            raise Blocked(step.why)
        if step.act == "report":
            return None
        if step.act == "create":
            return await self.create(step.resource, step.body, adopt=step.adopt)
        if step.act == "patch":
            return await self._client.patch(step.resource, step.key, step.body)
        if step.act == "apply":
            return await self._client.patch(step.resource, step.key, step.body, kind=Patch.APPLY, force=True)
        await self._delete(step.resource, step.key, step.uid, step.resource_version)
        return await self._client.create(step.resource, step.body, step.key[0]) if step.act == "recreate" else None

    @overload
    async def create(self, of: type[T], body: Json, *, adopt: bool = False) -> T: ...
    @overload
    async def create(self, of: Resource, body: Json, *, adopt: bool = False) -> Json: ...
    async def create(self, of: type[T] | Resource, body: Json, *, adopt: bool = False) -> T | Json:
        """A new object, or the one of that name if it has an owner that the body names; `adopt` takes any."""
        metadata = body["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        async with self._turn("create", of):
            try:
                return await self._client.create(of, body, key[0])
            except AlreadyExists:
                existing: T | Json = await self._client.get(of, key)
        owners = {owner["uid"] for owner in metadata.get("ownerReferences") or ()}
        if owners and not adopt and owners.isdisjoint(_live_owner_uids(existing)):
            raise NameTaken((of if isinstance(of, Resource) else of.resource).kind, key)
        return existing

    async def patch(
        self, live: T, patch: Mapping[str, Any], *, kind: Patch = Patch.MERGE, subresource: str = ""
    ) -> T | None:
        """Change an object; None where it is gone."""
        try:
            return await self._client.patch(type(live), live.key, patch, kind=kind, subresource=subresource)
        except NotFound:
            return None

    async def delete(self, live: Object, *, unchanged: bool = False) -> None:
        """Delete this very object, by UID; with `unchanged` only as long as nobody wrote it since it was read."""
        if live.metadata.deletion_timestamp is not None:
            return
        version = live.metadata.resource_version if unchanged else ""
        with suppress(Conflict):
            await self._delete(type(live), live.key, live.uid, version)

    async def release(self, live: Object, finalizer: str) -> None:
        """Take a finalizer off an object."""
        if finalizer not in live.metadata.finalizers:
            return
        left = [name for name in live.metadata.finalizers if name != finalizer]
        # The UID is a precondition: a new object of the same name keeps its finalizer.
        await self.patch(live, {"metadata": {"uid": live.uid, "finalizers": left or None}})

    async def _delete(self, of: Kind, key: Key, uid: str, resource_version: str = "") -> None:
        async with self._turn("delete", of):
            with suppress(NotFound):
                await self._client.delete(of, key, uid=uid, resource_version=resource_version, propagation="Background")

    def _turn(self, verb: str, of: Kind) -> AbstractAsyncContextManager[None]:
        priority = self._priority(verb, of)
        return nullcontext() if priority is None else self._client.turn(priority)


def _live_owner_uids(live: Object | Json) -> Collection[str]:
    if isinstance(live, dict):
        return _owner_uids(live)
    return {owner.uid for owner in live.metadata.owner_references}
