"""The JSON patch (RFC 6902) from one document to another: what a mutating webhook answers with."""

from __future__ import annotations

from typing import Any

from spinney.api.meta import Json


def diff(before: Any, after: Any, path: str = "") -> list[Json]:
    """Operations that turn `before` into `after`. Lists are compared place by place and grow or shrink at the end."""
    if before == after and type(before) is type(after):
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        return _diff_maps(before, after, path)
    if isinstance(before, list) and isinstance(after, list):
        return _diff_lists(before, after, path)
    return [{"op": "replace", "path": path, "value": after}]


def _diff_maps(before: Json, after: Json, path: str) -> list[Json]:
    operations: list[Json] = []
    for key, value in before.items():
        at = f"{path}/{_escaped(key)}"
        if key not in after:
            operations.append({"op": "remove", "path": at})
        else:
            operations += diff(value, after[key], at)
    for key, value in after.items():
        if key not in before:
            operations.append({"op": "add", "path": f"{path}/{_escaped(key)}", "value": value})
    return operations


def _diff_lists(before: list[Any], after: list[Any], path: str) -> list[Json]:
    operations: list[Json] = []
    for place, (old, new) in enumerate(zip(before, after, strict=False)):
        operations += diff(old, new, f"{path}/{place}")
    # From the end, so that earlier places keep their numbers.
    operations += [{"op": "remove", "path": f"{path}/{place}"} for place in range(len(before) - 1, len(after) - 1, -1)]
    operations += [{"op": "add", "path": f"{path}/-", "value": new} for new in after[len(before) :]]
    return operations


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
