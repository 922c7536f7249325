"""Differences between JSON documents: whether one covers another, and the patch from one to the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from spinney.api.meta import Json, Object, convert


def covers(live: Any, wanted: Any, optional: Collection[str] = ()) -> bool:
    """Whether `live` holds all that is wanted; it may hold more, except for items of lists.

    A None in `wanted` stands for a field that must be absent; an empty list may be. A missing field named in
    `optional` is no difference.
    """
    if live == wanted:
        return True
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(_covers_field(live.get(key), value, key, optional) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list):
        return len(live) == len(wanted) and all(
            covers(item, wanted_item, optional) for item, wanted_item in zip(live, wanted, strict=True)
        )
    return False


def _covers_field(live: Any, wanted: Any, key: str, optional: Collection[str]) -> bool:
    if wanted is None or live is None:
        return live is None and (wanted is None or wanted == [] or key in optional)
    return covers(live, wanted, optional)


def merge_patch(live: Json, wanted: Json, optional: Collection[str] = ()) -> Json:
    """The merge patch after which `live` covers `wanted`; empty where it does already."""
    patch: Json = {}
    for key, value in wanted.items():
        current = live.get(key)
        if _covers_field(current, value, key, optional):
            continue
        if isinstance(value, dict) and isinstance(current, dict):
            patch[key] = merge_patch(current, value, optional)
        else:
            patch[key] = without_none(value)
    return patch


def exact_merge_patch(live: Json, wanted: Json) -> Json:
    """The merge patch that makes one map equal another; removed members are null."""
    return {**{key: None for key in live if key not in wanted}, **named_patch(live, wanted)}


def named_patch(live: Json, wanted: Json) -> Json:
    """The merge patch that makes each wanted member of a map exactly so; other members stay."""
    patch: Json = {}
    for key, value in wanted.items():
        current: Any = live.get(key)
        if current == value:
            continue
        nested = isinstance(value, dict) and isinstance(current, dict)
        patch[key] = exact_merge_patch(current, value) if nested else value
    return patch


def json_patch(old: Any, new: Any, path: str = "") -> Iterator[Json]:
    """The JSON patch (RFC 6902) from one document to another; lists that differ are replaced whole."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        if old != new:
            yield {"op": "replace", "path": path, "value": new}
        return
    for key in [key for key in old if key not in new]:
        yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
    for key, value in new.items():
        place = f"{path}/{_escaped(key)}"
        if key not in old:
            yield {"op": "add", "path": place, "value": value}
        else:
            yield from json_patch(old[key], value, place)


def named_view(live: Object, wanted: Json) -> Json:
    """What a typed object holds of the spec that is wanted, and its metadata, as plain data.

    A type leaves out what has its default, so members are compared typed: one that is equal is given as it is wanted.
    """
    metadata = {"labels": {}, "annotations": {}, **msgspec.to_builtins(live.metadata)}
    view: Json = {"metadata": metadata, "spec": {}}
    spec, wanted_spec = getattr(live, "spec", None), wanted.get("spec") or {}
    if spec is None or not wanted_spec:
        return view
    typed = convert(type(spec), without_none(wanted_spec))
    for attribute, member in zip(spec.__struct_fields__, spec.__struct_encode_fields__, strict=True):
        if member in wanted_spec:
            current = getattr(spec, attribute)
            equal = current == getattr(typed, attribute)
            view["spec"][member] = wanted_spec[member] if equal else msgspec.to_builtins(current)
    return view


def without_none(value: Any) -> Any:
    """A document to create: without the fields that must be absent."""
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return value


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
