"""The configuration files of components, from the types that they are read into."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
from scripts.reference.tables import code, opening, table

from spinney.app.components import load, registered

_NAMES = {str: "text", int: "number", float: "number", bool: "true or false", type(None): "nothing"}

_TEXT = """`spinney run COMPONENT --config FILE` reads a component's settings from YAML. On a cluster the platform
writes these files from [Config](api.md#config) and [SchedulingShards](api.md#schedulingshard), and the
[chart's values](../../../deploy/chart/README.md) hold the rest. A field that a file leaves out has its
default."""


def page() -> str:
    """The page of configuration files."""
    lines = opening("Configuration files", _TEXT)
    for name in sorted(registered()):
        settings = load(name).settings
        if settings is not None and (rows := list(_fields(settings, ""))):
            lines += [f"## {name}", "", _sentence(settings), ""]
            lines += table(("field", "type", "default"), rows)
    return "\n".join(lines)


def _sentence(settings: type) -> str:
    return (settings.__doc__ or "").split("\n\n")[0].replace("\n", " ").strip()


def _fields(settings: type, path: str) -> Iterator[tuple[str, str, str]]:
    hints = typing.get_type_hints(settings)
    for field in msgspec.structs.fields(settings) if issubclass(settings, msgspec.Struct) else ():
        hint = _without_none(hints[field.name])
        place = f"{path}{field.encode_name}"
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield code(place), "object", _sentence(hint)
            yield from _fields(hint, f"{place}.")
        else:
            yield code(place), _type(hint), _default(field)


def _without_none(hint: Any) -> Any:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        parts = [part for part in typing.get_args(hint) if part is not type(None)]
        return parts[0] if len(parts) == 1 else hint
    return hint


def _type(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _type(arguments[0])
    if origin is typing.Literal:
        return "one of " + ", ".join(code(str(value)) for value in arguments)
    if origin in (tuple, list, frozenset):
        return f"list of {_type(arguments[0])}"
    if origin in (dict,):
        return "map"
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_type(part) for part in arguments)
    return _NAMES.get(hint, "object")


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default is msgspec.NODEFAULT or field.default in (None, "", (), frozenset()):
        return ""
    value = field.default
    return code(str(value).lower() if isinstance(value, bool) else str(value))
