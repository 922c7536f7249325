"""Structural OpenAPI schemas from wire types: the type is the one source of what a CRD says."""

from __future__ import annotations

import inspect
from datetime import datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from spinney.api.meta import Json, Object, ObjectMeta, Struct

_QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_SCALARS: dict[Any, Json] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
}
_INT_OR_STRING: Json = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class SchemaError(TypeError):
    """A field whose type has no structural schema."""


def object_schema(of: type[Object]) -> Json:
    """The schema of a kind; the API server itself knows the parts of its metadata."""
    schema = _struct(of)
    schema["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **{name: part for name, part in schema["properties"].items() if name not in ("apiVersion", "kind", "metadata")},
    }
    return schema


def _struct(of: type[Struct]) -> Json:
    schema: Json = {"type": "object"}
    if of.__doc__:
        schema["description"] = inspect.cleandoc(of.__doc__)
    hints = get_type_hints(of, include_extras=True)
    names = dict(zip(of.__struct_fields__, of.__struct_encode_fields__, strict=True))
    schema["properties"] = {wire: _hint(of, field, hints[field]) for field, wire in names.items()}
    required = [wire for field, wire in names.items() if _is_required(hints[field])]
    if required:
        schema["required"] = sorted(required)
    if rules := getattr(of, "rules", ()):
        schema["x-kubernetes-validations"] = list(rules)
    if getattr(of, "atomic", False):
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _marks(hint: Any) -> list[msgspec.Meta]:
    return [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, msgspec.Meta)]


def _is_required(hint: Any) -> bool:
    return any(mark.extra and mark.extra.get("required") for mark in _marks(hint))


def _hint(of: type, field: str, hint: Any) -> Json:
    if get_origin(hint) is Annotated:
        schema = dict(_hint(of, field, get_args(hint)[0]))
        for mark in _marks(hint):
            schema.update(mark.extra_json_schema or {})
        return schema
    if hint in _SCALARS:
        return _SCALARS[hint]
    if hint is ObjectMeta or hint == Json:
        return _OPEN
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _struct(hint)
    arguments = [argument for argument in get_args(hint) if argument is not NoneType]
    match get_origin(hint):
        case origin if origin in (Union, UnionType):
            return _hint(of, field, arguments[0]) if len(arguments) == 1 else _union(of, field, set(arguments))
        case origin if origin is tuple:
            return {"type": "array", "items": _hint(of, field, arguments[0])}
        case origin if origin is dict:
            return {"type": "object", "additionalProperties": _hint(of, field, arguments[1])}
    raise SchemaError(f"{of.__name__}.{field}: {hint} has no structural schema")


def _union(of: type, field: str, members: set[Any]) -> Json:
    if members == {str, int, float}:
        return {**_INT_OR_STRING, "pattern": _QUANTITY}
    if members == {str, int}:
        return _INT_OR_STRING
    raise SchemaError(f"{of.__name__}.{field}: a union of {members} has no structural schema")
