"""Strategic merge patch: a merge patch that merges lists by key."""

from __future__ import annotations

from collections import deque
from operator import itemgetter
from typing import Any

import msgspec

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import bad_request, shown
from spinney.embedded.apiserver.schema.shapes import Shape

_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_DIRECTIVES = ("$patch", "$retainKeys", _DELETE_FROM, _ORDER)


def merge(target: Any, patch: Any, shape: Shape) -> Any:
    """The target with the patch applied; unchanged parts are shared with the target."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    directed = "$" in "".join(patch)
    if directed:
        directive = patch.get("$patch")
        if directive == "replace":
            return {key: value for key, value in patch.items() if key != "$patch"}
        if directive == "delete":
            return {}
        if directive not in (None, "merge"):
            raise bad_request(f"unknown patch type: {directive} in map: {shown(patch)}")
        target = _kept(target, patch)
    for key, value in patch.items():
        if directed and key.startswith(_DIRECTIVES):
            continue
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            target[key] = merge(target.get(key), value, shape.child(key))
        elif isinstance(value, list):
            child = shape.child(key)
            merges = "merge" in child.strategy
            order = _order_of(patch, key) if directed else None
            if merges and key in target:
                target[key] = _merge_list(target[key] or [], value, child, order)
            else:
                target[key] = [_strip(item) for item in value if not (merges and _is_directive(item))]
        else:
            target[key] = value
    return _reordered(target, patch, shape) if directed else target


def _order_of(patch: Json, field: str) -> list[Any] | None:
    """The order that a patch gives for a list."""
    order = patch.get(_ORDER + field)
    if not isinstance(order, list | None):
        raise bad_request(f"invalid patch format of {_ORDER}{field}: expected a list")
    return order


def _is_directive(item: Any) -> bool:
    """Whether an element is only a directive."""
    return isinstance(item, dict) and ("$patch" in item and (len(item) == 1 or item["$patch"] == "delete"))


def _kept(target: Json, patch: Json) -> Json:
    """The map after the patch's directives, before the merge."""
    retained = patch.get("$retainKeys")
    if retained is not None:
        kept = {key for key in retained if isinstance(key, str)} if isinstance(retained, list) else None
        if kept is None or any(key not in kept for key in patch if key[:1] != "$"):
            raise bad_request("invalid patch format of retainKeys")
        target = {key: value for key, value in target.items() if key in kept}
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            field = key.removeprefix(_DELETE_FROM)
            items = target.get(field) or []
            if not isinstance(value, list) or not isinstance(items, list):
                raise bad_request(f"invalid patch format of {key}: expected a list")
            deleted = set(_names(value, ""))
            target[field] = [item for item, name in zip(items, _names(items, ""), strict=True) if name not in deleted]
    return target


def _reordered(target: Json, patch: Json, shape: Shape) -> Json:
    """The map with lists reordered, for which the patch has only an order."""
    for key in patch:
        if key.startswith(_ORDER) and key.removeprefix(_ORDER) not in patch:
            field = key.removeprefix(_ORDER)
            order = _order_of(patch, field)
            if isinstance(target.get(field), list) and order is not None:
                target[field] = _ordered(target[field], order, shape.child(field).merge_key, target[field])
    return target


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strip(item) for key, item in value.items() if not key.startswith("$")}
    return [_strip(item) for item in value] if isinstance(value, list) else value


def _merge_list(target: list[Any], patch: list[Any], shape: Shape, order: list[Any] | None) -> list[Any]:
    key = shape.merge_key
    if order is not None:
        _check_order(patch, order, key)
    if not key:
        present = set(_names(target, ""))
        merged = target + [item for item, name in zip(patch, _names(patch, ""), strict=True) if name not in present]
        return _ordered(merged, order if order is not None else patch, "", target)
    if {"$patch": "replace"} in patch:
        return [_strip(item) for item in patch if not isinstance(item, dict) or item.get("$patch") != "replace"]
    result = dict(zip(_names(target, key), target, strict=True))
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {shown(item)} does not contain declared merge key: {key}")
        (name,) = _names([item], key)
        if item.get("$patch") == "delete":
            result.pop(name, None)
        elif name not in result:
            result[name] = merge({}, item, shape.items)
        elif item.get("$patch") == "replace":
            result[name] = _strip(item)
        else:
            result[name] = merge(result[name], item, shape.items)
    merged = list(result.values())
    if order is None and not target:
        return merged
    return _ordered(merged, order if order is not None else patch, key, target)


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """Refuse a patch whose elements are not in the order that it gives for the list."""
    rest = iter([entry.get(key) if key and isinstance(entry, dict) else entry for entry in order])
    for item in patch:
        if isinstance(item, dict) and item.get("$patch") == "delete":
            continue
        name = item.get(key) if key and isinstance(item, dict) else item
        if name not in rest:
            raise bad_request(
                f"The order in patch list:\n{shown(patch)}\n doesn't match $setElementOrder list:\n{shown(order)}\n"
            )


def _ordered(items: list[Any], order: list[Any], key: str, original: list[Any]) -> list[Any]:
    """Items in the patch's order; items that it does not name keep their place among the named ones.

    An item that is new has no place yet, and so comes before everything that the patch does not name.
    """
    names, wanted = _names(items, key), _names(order, key)
    by_name = dict(zip(names, items, strict=True))
    if len(by_name) == len(items) and by_name.keys() == set(wanted):
        return [by_name[name] for name in dict.fromkeys(wanted)]
    rank = {name: position for position, name in reversed(list(enumerate(wanted)))}
    place = {name: position for position, name in enumerate(_names(original, key))}
    ranked = [(rank.get(name), place.get(name, -1), item) for name, item in zip(names, items, strict=True)]
    named = sorted((entry for entry in ranked if entry[0] is not None), key=itemgetter(0))
    others = deque((here, item) for at, here, item in ranked if at is None)
    result: list[Any] = []
    for _, here, item in named:
        while others and others[0][0] < here:
            result.append(others.popleft()[1])
        result.append(item)
    return result + [item for _, item in others]


def _names(items: list[Any], key: str) -> list[Any]:
    """The merge keys of a list's elements."""
    names = [item.get(key) if key and isinstance(item, dict) else item for item in items]
    return [msgspec.json.encode(name) if isinstance(name, dict | list) else name for name in names]
