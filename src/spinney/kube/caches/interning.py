"""Store equal parts of cached objects once: many pods of a job repeat the same values.

Cached objects are immutable, so nobody can tell. It costs about as much as decoding, and saves more than half.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec.structs import force_setattr

from spinney.api.meta import ObjectMeta

T = TypeVar("T")
# A value, and an earlier state of it whose parts are shared already, if there is one.
Share = Callable[[Any, Any], None]

# Characters, as JSON, of one value and of all: what is longer is not common. Full tables start over: what is common is
# soon back.
_LONGEST = 4096
_MOST = 32 * 1024 * 1024
# Values that are looked up whole, by type.
_tables: dict[Any, dict[Any, Any]] = {}
_sharers: dict[Any, Share | None] = {}
_maps: dict[tuple[Any, ...], dict[str, Any]] = {}
_EMPTY: dict[str, Any] = {}


class _Kept:
    """The length of all values in the tables."""

    length = 0


_kept = _Kept()
# What an entry takes beside its value.
_OVERHEAD = 100
# What is different on every object is not worth looking up.
_UNIQUE = {(ObjectMeta, "name"), (ObjectMeta, "uid"), (ObjectMeta, "resource_version")}


def sharer(of: type[Any]) -> Share:
    """The function that makes an object of a wire type share its parts with others, in place.

    Parts that are as they were in an earlier state of the object are taken from there, which costs the least. Equal is
    the same there, since a field of a wire type never changes from a number to a truth value.
    """
    return _sharer(of) or (lambda value, former: None)


def _sharer(kind: Any) -> Share | None:
    """The function that shares the parts of a value; None if nothing can be shared."""
    if kind not in _sharers:
        # A type that holds itself ends here.
        _sharers[kind] = None
        _sharers[kind] = _make(kind)
    return _sharers[kind]


def _make(kind: Any) -> Share | None:
    if get_origin(kind) is tuple:
        return _each(_sharer(get_args(kind)[0]))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _fields(kind)
    return None


def _each(share: Share | None) -> Share | None:
    if share is None:
        return None

    def each(values: tuple[Any, ...], former: Any) -> None:
        for value in values:
            share(value, None)

    return each


def _fields(kind: type[msgspec.Struct]) -> Share | None:
    """Replace members that can be looked up whole, and maps; share the parts of the others."""
    members = [(f.name, _present(f.type)) for f in msgspec.structs.fields(kind) if (kind, f.name) not in _UNIQUE]
    whole = [(name, _tables.setdefault(of, {})) for name, of in members if _is_worth_it(of) and _is_whole(of)]
    maps = [name for name, of in members if get_origin(of) is dict and _is_plain(get_args(of)[1])]
    parts = [(name, share) for name, of in members if not _is_whole(of) and (share := _sharer(of)) is not None]
    get_whole = _getter([name for name, _ in whole])

    def fields(value: Any, former: Any) -> None:
        for (name, table), before in zip(whole, get_whole(value), strict=True):
            if before:
                shared = table.get(before)
                if shared is None:
                    _remember(table, before, before)
                elif shared is not before:
                    force_setattr(value, name, shared)
        for name in maps:
            before = getattr(value, name)
            earlier = getattr(former, name, None)
            force_setattr(value, name, earlier if earlier == before else _shared_map(before))
        for name, share in parts:
            before = getattr(value, name)
            if not before:
                continue
            earlier = getattr(former, name, None)
            if earlier == before:
                force_setattr(value, name, earlier)
            else:
                share(before, earlier)

    return fields if whole or maps or parts else None


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _shared_map(value: dict[str, Any] | None) -> dict[str, Any] | None:
    if not value:
        return value if value is None else _EMPTY
    key = tuple(value.items())
    shared = _maps.get(key)
    if shared is None:
        _remember(_maps, key, value)
        return value
    return shared


def _remember(table: dict[Any, Any], key: Any, value: Any) -> None:
    length = len(value) if isinstance(value, str) else len(msgspec.json.encode(value))
    if length > _LONGEST:
        return
    _kept.length += length + _OVERHEAD
    if _kept.length > _MOST:
        _maps.clear()
        for each in _tables.values():
            each.clear()
        _kept.length = length + _OVERHEAD
    table[key] = value


def _present(kind: Any) -> Any:
    """A type without its None."""
    if get_origin(kind) not in (types.UnionType, Union):
        return kind
    present = [each for each in get_args(kind) if each is not type(None)]
    return present[0] if len(present) == 1 else kind


def _is_plain(kind: Any) -> bool:
    """Strings and numbers only: in an untyped map, 1 and True are equal and would be mixed up."""
    return set(get_args(kind) or (kind,)) <= {str, int, float}


def _is_worth_it(kind: Any) -> bool:
    """Whether sharing gains anything: numbers are small, or shared already."""
    return kind in (str, datetime) or get_origin(kind) is tuple or _is_struct(kind)


def _is_whole(kind: Any, inside: tuple[Any, ...] = ()) -> bool:
    """Whether values of a type can be looked up whole: they contain no map."""
    if kind in (str, int, float, bool, datetime, type(None)):
        return True
    if get_origin(kind) in (tuple, types.UnionType, Union):
        return all(_is_whole(each, inside) for each in get_args(kind) if each is not Ellipsis)
    if not _is_struct(kind) or kind in inside:
        return False
    return all(_is_whole(field.type, (*inside, kind)) for field in msgspec.structs.fields(kind))


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
