"""Plan the steps that make live objects match wanted ones: pure. `kube.writer` applies them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from spinney.api.meta import Json, Key, Object, Resource
from spinney.kube.difference import covers, exact_merge_patch, merge_patch, named_patch, named_view, without_none


class Drift(StrEnum):
    """What to do where a live object differs from the wanted one."""

    PATCH = "merge-patch what differs"
    # For a spec that is ours as a whole.
    PATCH_EXACTLY = "merge-patch what differs, and remove what the wanted spec does not name"
    # For a spec that we share with others, member by member.
    PATCH_NAMED = "make each member that the wanted spec names exactly so, and leave the others"
    # The server keeps count of what we applied, so fields that we no longer name go.
    APPLY = "server-side apply the whole object"
    # Its spec cannot change, but it can be deleted and created again.
    RECREATE = "patch metadata; where the spec differs, delete and create again"
    # It can neither change nor go while others depend on it.
    REPORT = "patch metadata; report a spec that differs"
    IGNORE = "leave it: only its existence matters"


_PATCHING = (Drift.PATCH, Drift.PATCH_EXACTLY, Drift.PATCH_NAMED)


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
    # A patch of more than metadata fails where somebody wrote the object since it was read.
    guarded: bool = False

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

    `uid` is a precondition of a deletion, `resource_version` of a deletion or a patch.
    """

    act: Literal["create", "patch", "apply", "recreate", "delete", "wait", "report"]
    resource: Resource
    key: Key
    body: Json = field(default_factory=dict)
    uid: str = ""
    resource_version: str = ""
    adopt: bool = False
    why: str = ""


def plan(wanted: Wanted, live: Json | Object | None) -> Step | None:
    """The step towards a wanted object; None if the live object matches.

    A typed live object is a narrow view, so it tells only about the members that are wanted: PATCH_NAMED.
    """
    if isinstance(live, Object):
        live = named_view(live, wanted.body)
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
    patch = _patch(wanted, live)
    if not patch:
        return None
    if wanted.drift in _PATCHING or "spec" not in patch:
        guarded = wanted.guarded and set(patch) != {"metadata"}
        version = live["metadata"].get("resourceVersion", "") if guarded else ""
        return Step("patch", wanted.resource, wanted.key, patch, resource_version=version)
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


def _patch(wanted: Wanted, live: Json) -> Json:
    if wanted.drift not in (Drift.PATCH_EXACTLY, Drift.PATCH_NAMED):
        return merge_patch(live, _comparable(wanted, live), wanted.gated)
    patch = merge_patch(live, {"metadata": wanted.body["metadata"]})
    difference = exact_merge_patch if wanted.drift is Drift.PATCH_EXACTLY else named_patch
    spec = difference(live.get("spec") or {}, wanted.body.get("spec") or {})
    return {**patch, "spec": spec} if spec else patch


def _same_owner(body: Json, live: Json) -> bool:
    wanted = owner_uids(body)
    return not wanted or not wanted.isdisjoint(owner_uids(live))


def owner_uids(body: Json) -> set[str]:
    """The UIDs of an object's owners."""
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
