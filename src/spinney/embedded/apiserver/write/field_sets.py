"""Sets of field paths, kept in the form that `managedFields` has on the wire.

A node maps `f:name`, `k:{keys}` and `v:value` to nodes. An empty node is a member; a node with children is a member if
it also holds `.`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from spinney.api.meta import Json
from spinney.api.text_cache import text_pair_cache
from spinney.embedded.apiserver.schema.shapes import Shape

FieldSet = dict[str, Any]


class _Missing:
    """The value of an absent field, as opposed to null."""


MISSING: Any = _Missing()


def is_field_set(fields: Any) -> bool:
    """Whether data of a client is a set of field paths."""
    return isinstance(fields, dict) and all(_is_key(key) and is_field_set(below) for key, below in fields.items())


def _is_key(key: str) -> bool:
    if key == "." or key.startswith("f:"):
        return True
    try:
        value = msgspec.json.decode(key[2:])
    except (msgspec.DecodeError, RecursionError):
        return False
    match key[:2]:
        case "k:":
            return isinstance(value, dict)
        case "i:":
            return isinstance(value, int)
    return key.startswith("v:")


def difference(fields: FieldSet, other: FieldSet) -> FieldSet:
    """Members of the first that are not members of the second."""
    result: FieldSet = {}
    for key, node in fields.items():
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


def union(fields: FieldSet, other: FieldSet) -> FieldSet:
    """Members of either."""
    if not fields:
        return other
    result = dict(fields)
    for key, node in other.items():
        own = result.get(key)
        if own is None:
            result[key] = node
        elif own or node:
            merged = union(own or {".": {}}, node or {".": {}})
            result[key] = merged
    return result


def intersection(fields: FieldSet, other: FieldSet) -> FieldSet:
    """Members of both."""
    result: FieldSet = {}
    for key, node in fields.items():
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
    """The key of a list's element in a field path."""
    if shape.keys and isinstance(item, dict):
        if len(shape.keys) == 1 and isinstance(named := item.get(shape.keys[0]), str):
            return _named_key(shape.keys[0], named)
        values = {}
        for key in sorted(shape.keys):
            value = item.get(key, shape.items.child(key).schema.get("default"))
            if value is not None:
                values[key] = value
        return "k:" + msgspec.json.encode(values).decode()
    return "v:" + msgspec.json.encode(item).decode()


@text_pair_cache(4096)
def _named_key(key: str, value: str) -> str:
    """The usual case, cached: conditions by type, containers by name."""
    return "k:" + msgspec.json.encode({key: value}).decode()


# Of a map without maps or lists only the names matter; pods of one template have the same ones.
_flat: dict[tuple[str, ...], FieldSet] = {}
_MOST_FLAT = 4096
# Characters of the names of one map: the largest struct has about 600.
_MOST_IN_NAMES = 2048


def members(value: Any, shape: Shape) -> FieldSet:
    """Every field of a new value, owned by its writer. The result is shared: do not change it."""
    if isinstance(value, dict):
        if not value or shape.atomic:
            return {}
        for item in value.values():
            if item and isinstance(item, dict | list):
                break
        else:
            return _flat_members(tuple(value))
        child = shape.child
        fields: FieldSet = {}
        for key, item in value.items():
            if item and isinstance(item, dict | list):
                fields["f:" + key] = members(item, child(key))
            else:
                fields["f:" + key] = {}
        fields["."] = {}
        return fields
    if isinstance(value, list) and value and not shape.atomic and shape.type == "array":
        items = shape.items
        fields = {item_key(item, shape): members(item, items) for item in value}
        fields["."] = {}
        return fields
    return {}


def _flat_members(names: tuple[str, ...]) -> FieldSet:
    fields = _flat.get(names)
    if fields is None:
        fields = {"f:" + name: {} for name in names}
        fields["."] = {}
        if len(_flat) < _MOST_FLAT and sum(map(len, names)) <= _MOST_IN_NAMES:
            _flat[names] = fields
    return fields


def added(value: Json, shape: Shape) -> FieldSet:
    """Every field of a new object, owned by its creator, but for fields that every object has."""
    fields: FieldSet = {}
    for key, item in value.items():
        child = shape.child(key)
        if not child.present:
            fields["f:" + key] = members(item, child)
        elif item:
            below = {} if child.atomic else added(item, child)
            if below or child.atomic:
                fields["f:" + key] = below
    return fields


class Changes(msgspec.Struct, frozen=True):
    """The fields that a write added or changed, and those that it removed."""

    changed: FieldSet
    removed: FieldSet


def compare(old: Json, new: Json, shape: Shape) -> Changes:
    """Compare two states of an object field by field."""
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
    """The members as dotted paths, for messages."""
    dotted: list[str] = []
    for key, node in fields.items():
        if key == ".":
            dotted.append(prefix)
            continue
        path = prefix + readable_key(key)
        dotted += paths(node, path) if node else [path]
    return dotted


def readable_key(key: str) -> str:
    """One key of a field path, for messages."""
    if key.startswith("f:"):
        return "." + key[2:]
    value = msgspec.json.decode(key[2:])
    if key.startswith("v:"):
        return f"[={msgspec.json.encode(value).decode()}]"
    inner = ",".join(f"{name}={msgspec.json.encode(item).decode()}" for name, item in value.items())
    return f"[{inner}]"
