"""What to do about one wanted object, given the one that is there: pure, and nothing where nothing differs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spinney.api.meta import Json
from spinney.backends.capabilities import Loss
from spinney.backends.interface import Change, Wanted


@dataclass(frozen=True)
class Step:
    """One write, or the reason why none is possible. A patch is a merge patch."""

    act: Literal["create", "patch", "replace", "wait", "report"]
    wanted: Wanted
    body: Json
    why: str = ""


def plan_object(wanted: Wanted, live: Json | None) -> Step | None:
    """The step towards a wanted object; None when it is there as wanted."""
    if live is None:
        return Step("create", wanted, without_none(wanted.body))
    if not _same_owner(live, wanted):
        return _foreign(wanted, live)
    if live["metadata"].get("deletionTimestamp"):
        return Step("wait", wanted, {}, f"{_called(wanted)} is being deleted")
    if wanted.change is Change.ONCE:
        return None
    patch = difference(live, _comparable(wanted, live), wanted.gated)
    if not patch:
        return None
    if wanted.change is Change.PATCH or "spec" not in patch:
        return Step("patch", wanted, patch)
    if wanted.change is Change.REPLACE:
        return Step("replace", wanted, without_none(wanted.body))
    return Step("report", wanted, {}, f"{_called(wanted)} cannot change while its pods exist: {_fields(patch['spec'])}")


def dropped(wanted: Wanted, live: Json) -> tuple[Loss, ...]:
    """What is lost because the API server dropped gated fields when it stored the object."""
    spec = live.get("spec") or {}
    asked = wanted.body.get("spec") or {}
    return tuple(
        loss for key, loss in wanted.gated.items() if loss is not None and asked.get(key) and not spec.get(key)
    )


def difference(live: Json, wanted: Json, gated: Collection[str] = ()) -> Json:
    """The merge patch that makes `live` hold all that is wanted; what it holds beyond that stays."""
    patch: Json = {}
    for key, value in wanted.items():
        found = live.get(key)
        if value is None:
            if found is not None:
                patch[key] = None
        elif found is None:
            if key not in gated:
                patch[key] = without_none(value)
        elif isinstance(value, dict) and isinstance(found, dict):
            inner = difference(found, value, gated)
            if inner:
                patch[key] = inner
        elif not _covers(found, value, gated):
            patch[key] = without_none(value)
    return patch


def without_none(value: Any) -> Any:
    """Plain data to create with: a None stood for a field that must be absent."""
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return value


def _covers(found: Any, wanted: Any, gated: Collection[str]) -> bool:
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(_covers(f, w, gated) for f, w in zip(found, wanted, strict=True))
    if isinstance(wanted, dict) and isinstance(found, dict):
        return not difference(found, wanted, gated)
    return bool(found == wanted)


def _comparable(wanted: Wanted, live: Json) -> Json:
    """The wanted body without unions whose member was chosen otherwise when the object was made."""
    spec, found = wanted.body.get("spec") or {}, live.get("spec") or {}
    settled = {name for name in wanted.unions if name in spec and set(found.get(name) or {}) != set(spec[name])}
    return {**wanted.body, "spec": {key: value for key, value in spec.items() if key not in settled}}


def _same_owner(live: Json, wanted: Wanted) -> bool:
    owners = {owner["uid"] for owner in wanted.body["metadata"].get("ownerReferences") or ()}
    return bool(owners & {owner["uid"] for owner in live["metadata"].get("ownerReferences") or ()})


def _foreign(wanted: Wanted, live: Json) -> Step:
    owners: Sequence[Json] = live["metadata"].get("ownerReferences") or ()
    owner = f"{owners[0]['kind']} {owners[0]['name']} (uid {owners[0]['uid']})" if owners else "nobody"
    return Step("wait", wanted, {}, f"{_called(wanted)} exists and belongs to {owner}; delete or rename it")


def _called(wanted: Wanted) -> str:
    return f"{wanted.resource.kind} {wanted.name}"


def _fields(patch: Json, prefix: str = "spec") -> str:
    paths = []
    for key, value in patch.items():
        paths.append(_fields(value, f"{prefix}.{key}") if isinstance(value, dict) else f"{prefix}.{key} → {value}")
    return ", ".join(paths)
