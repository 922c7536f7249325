"""Sets of field paths, kept in the form that `managedFields` has on the wire.

A node maps `f:name`, `k:{keys}` and `v:value` to nodes. An empty node is a member; a node with children is a member if
it also holds `.`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from spinney.api.meta import Json
from spinney.embedded.apiserver.schema.shapes import Shape

FieldSet = dict[str, Any]


class _Missing:
    """The value of a field that is not there, which is not the same as null."""


MISSING: Any = _Missing()


def difference(mine: FieldSet, other: FieldSet) -> FieldSet:
    """Members of the first that are not members of the second."""
    result: FieldSet = {}
    for key, node in mine.items():
        against = other.get(key)
        if against is None:
            result[key] = node
        elif key == ".":
            continue
        elif not node:
            if against and "." not in against:
                result[key] = node
        else:
            rest = difference(node, against) if against else {k: v for k, v in node.items() if k != "."}
            if rest:
                result[key] = {} if rest.keys() == {"."} else rest
    return result


def union(mine: FieldSet, other: FieldSet) -> FieldSet:
    """Members of either."""
    if not mine:
        return other
    result = dict(mine)
    for key, node in other.items():
        known = result.get(key)
        if known is None:
            result[key] = node
        elif known or node:
            merged = union(known or {".": {}}, node or {".": {}})
            result[key] = merged
    return result


def intersection(mine: FieldSet, other: FieldSet) -> FieldSet:
    """Members of both."""
    result: FieldSet = {}
    for key, node in mine.items():
        against = other.get(key)
        if against is None:
            continue
        if not node or not against:
            if (not node or "." in node) and (not against or "." in against):
                result[key] = {}
            continue
        both = intersection(node, against)
        if both:
            result[key] = {} if both.keys() == {"."} else both
    return result


def item_key(item: Any, shape: Shape) -> str:
    """How a list's element is named in a path."""
    if shape.keys and isinstance(item, dict):
        if len(shape.keys) == 1 and isinstance(named := item.get(shape.keys[0]), str):
            return _named_key(shape.keys[0], named)
        found = {}
        for key in sorted(shape.keys):
            value = item.get(key, shape.items.child(key).schema.get("default"))
            if value is not None:
                found[key] = value
        return "k:" + msgspec.json.encode(found).decode()
    return "v:" + msgspec.json.encode(item).decode()


@lru_cache(maxsize=4096)
def _named_key(key: str, value: str) -> str:
    """The usual case: conditions by type, containers by name, and the same few of them all the time."""
    return "k:" + msgspec.json.encode({key: value}).decode()


# Of a map without maps or lists in it only the names matter, and these are few: pods of one template are all alike.
_flat: dict[tuple[str, ...], FieldSet] = {}


def members(value: Any, shape: Shape) -> FieldSet:
    """Every field of a value that did not exist before, as who wrote it owns them. Shared: not to be changed."""
    if isinstance(value, dict):
        if not value or shape.atomic:
            return {}
        for item in value.values():
            if item and isinstance(item, dict | list):
                break
        else:
            return _flat_members(tuple(value))
        child = shape.child
        found: FieldSet = {}
        for key, item in value.items():
            if item and isinstance(item, dict | list):
                found["f:" + key] = members(item, child(key))
            else:
                found["f:" + key] = {}
        found["."] = {}
        return found
    if isinstance(value, list) and value and not shape.atomic and shape.type == "array":
        items = shape.items
        found = {item_key(item, shape): members(item, items) for item in value}
        found["."] = {}
        return found
    return {}


def _flat_members(names: tuple[str, ...]) -> FieldSet:
    found = _flat.get(names)
    if found is None:
        found = {"f:" + name: {} for name in names}
        found["."] = {}
        if len(_flat) < 4096:
            _flat[names] = found
    return found


def added(value: Json, shape: Shape) -> FieldSet:
    """Every field of a new object, as who made it owns them: what is always there is not owned as such."""
    found: FieldSet = {}
    for key, item in value.items():
        child = shape.child(key)
        if not child.present:
            found["f:" + key] = members(item, child)
        elif item:
            below = {} if child.atomic else added(item, child)
            if below or child.atomic:
                found["f:" + key] = below
    return found


class Changes(NamedTuple):
    """What a write did: fields that were added or changed, and fields that were removed."""

    changed: FieldSet
    removed: FieldSet


def compare(old: Json, new: Json, shape: Shape) -> Changes:
    """What happened to the fields of an object."""
    changes = Changes({}, {})
    _compare_maps(old, new, shape, changes)
    return changes


def _compare_maps(old: Json, new: Json, shape: Shape, into: Changes) -> None:
    for key, value in new.items():
        before = old.get(key, MISSING)
        if before is value:
            continue
        child = shape.child(key)
        if before is MISSING and child.present:
            before = {}
        _compare(before, value, child, "f:" + key, into)
    for key, before in old.items():
        if key not in new:
            child = shape.child(key)
            _compare(before, {} if child.present else MISSING, child, "f:" + key, into)


def _compare(old: Any, new: Any, shape: Shape, name: str, into: Changes) -> None:
    if old is MISSING:
        into.changed[name] = members(new, shape)
        return
    if new is MISSING:
        into.removed[name] = members(old, shape)
        return
    if old == new and type(old) is type(new):
        return
    below = Changes({}, {})
    if isinstance(old, dict) and isinstance(new, dict) and not shape.atomic and (old or new):
        _compare_maps(old, new, shape, below)
    elif isinstance(old, list) and isinstance(new, list) and shape.type == "array" and not shape.atomic:
        _compare_lists(old, new, shape, below)
    else:
        into.changed[name] = {}
        return
    if below.changed:
        into.changed[name] = below.changed
    if below.removed:
        into.removed[name] = below.removed


def _compare_lists(old: list[Any], new: list[Any], shape: Shape, into: Changes) -> None:
    before = {item_key(item, shape): item for item in old}
    after = {item_key(item, shape): item for item in new}
    for key, item in after.items():
        _compare(before.get(key, MISSING), item, shape.items, key, into)
    for key, item in before.items():
        if key not in after:
            into.removed[key] = members(item, shape.items)


def paths(fields: FieldSet, prefix: str = "") -> list[str]:
    """The members as dotted paths, as conflicts are told to people."""
    found: list[str] = []
    for key, node in fields.items():
        if key == ".":
            found.append(prefix)
            continue
        path = prefix + told_key(key)
        found += paths(node, path) if node else [path]
    return found


def told_key(key: str) -> str:
    """An element of a path, as it is told to people."""
    if key.startswith("f:"):
        return "." + key[2:]
    value = msgspec.json.decode(key[2:])
    if key.startswith("v:"):
        return f"[={msgspec.json.encode(value).decode()}]"
    inner = ",".join(f"{name}={msgspec.json.encode(item).decode()}" for name, item in value.items())
    return f"[{inner}]"
