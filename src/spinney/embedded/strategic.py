"""Strategic merge patch: merge patch that knows which lists are maps by another name."""

from __future__ import annotations

from typing import Any

import msgspec

from spinney.embedded.errors import plain
from spinney.embedded.shapes import Shape

_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def merge(target: Any, patch: Any, shape: Shape) -> Any:
    """The target with the patch applied. What the patch does not touch is shared with the target."""
    if not isinstance(patch, dict):
        return patch
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise plain(f"unknown patch type: {directive} in map: {_go_map(patch)}")
    target = dict(target) if isinstance(target, dict) else {}
    retained = patch.get("$retainKeys")
    if retained is not None:
        target = {key: value for key, value in target.items() if key in retained}
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            field = key.removeprefix(_DELETE_FROM)
            target[field] = [item for item in target.get(field) or () if item not in value]
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            target.pop(key, None)
            continue
        child = shape.child(key)
        if isinstance(value, list) and "merge" in child.strategy:
            target[key] = _merge_list(target.get(key) or [], value, child, patch.get(_ORDER + key))
        elif isinstance(value, list):
            target[key] = [_strip(item) for item in value]
        else:
            target[key] = merge(target.get(key), value, child)
    for key, order in patch.items():
        if key.startswith(_ORDER) and key.removeprefix(_ORDER) not in patch:
            field = key.removeprefix(_ORDER)
            if isinstance(target.get(field), list):
                target[field] = _ordered(target[field], order, shape.child(field).merge_key, target[field])
    return target


def _go_map(value: Any) -> str:
    """A map as Go prints it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_go_map(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_go_map, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strip(item) for key, item in value.items() if not key.startswith("$")}
    return [_strip(item) for item in value] if isinstance(value, list) else value


def _merge_list(target: list[Any], patch: list[Any], shape: Shape, order: list[Any] | None) -> list[Any]:
    key = shape.merge_key
    if not key:
        merged = target + [item for item in patch if item not in target]
        return _ordered(merged, order if order is not None else patch, "", target)
    if any(isinstance(item, dict) and item.get("$patch") == "replace" and len(item) == 1 for item in patch):
        return [_strip(item) for item in patch if item.get("$patch") != "replace"]
    result = list(target)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise plain(f"map: {_go_map(item)} does not contain declared merge key: {key}")
        at = next((i for i, old in enumerate(result) if isinstance(old, dict) and old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            result = [old for old in result if old.get(key) != item[key]]
        elif at is None:
            result.append(merge({}, item, shape.items))
        elif item.get("$patch") == "replace":
            result[at] = _strip(item)
        else:
            result[at] = merge(result[at], item, shape.items)
    return _ordered(result, order if order is not None else patch, key, target)


def _ordered(items: list[Any], order: list[Any], key: str, original: list[Any]) -> list[Any]:
    """Items in the order the patch gives; those it does not name go where they stood before among the named ones.

    An item that is new has no place yet, and so comes before everything that the patch does not name.
    """

    def name_of(item: Any) -> Any:
        name = item.get(key) if key and isinstance(item, dict) else item
        return msgspec.json.encode(name) if isinstance(name, dict | list) else name

    rank = {name_of(entry): position for position, entry in reversed(list(enumerate(order)))}
    place = {name_of(item): position for position, item in enumerate(original)}
    named = sorted((item for item in items if name_of(item) in rank), key=lambda item: rank[name_of(item)])
    others = [item for item in items if name_of(item) not in rank]
    result: list[Any] = []
    for item in named:
        here = place.get(name_of(item), -1)
        while others and place.get(name_of(others[0]), -1) < here:
            result.append(others.pop(0))
        result.append(item)
    return result + others
