"""Bring an object of a built-in kind into normal form, as Go's decoder does.

Types are checked, unknown fields dropped, quantities and times normalised, and empty values left out. Most objects need
none of this: a compiled schema of the normal form tells in a few microseconds, and only the others are walked.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import jsonschema_rs

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.api.times import rfc3339, rfc3339_micro
from spinney.embedded.apiserver.errors import shown
from spinney.embedded.apiserver.schema.misfit import Misfit, wrong_type
from spinney.embedded.apiserver.schema.shapes import META, RAW, Shape, built_in_shape, definitions, meta_shape, zeros

_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
_MICRO_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_ANYTHING = (
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    RAW,
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
)
# Times that Go stores as a value, not as a pointer: it writes null for none.
_NULL_IS_KEPT = frozenset(("lastProbeTime",))
_QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
# Short ones: those that could be too large are walked, and capped.
_NORMAL_QUANTITY = (
    r"^(0|-?([1-9]\d{0,2}(Ki|Mi|Gi|Ti|Pi)|([1-9]\d{0,12})?[1-9]0{0,2}[num]?|([1-9]\d?)?[1-9]0{0,2}[kMGT]))$"
)
_DAY = r"[1-9]\d{3}-((0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
_SECOND = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_NORMAL_MICRO_TIME = rf"^{_DAY}T{_SECOND}\.\d{{6}}Z$"
_MICROSECONDS = re.compile(r"^\.\d{6}")
_NORMAL_TIME = rf"^{_DAY}T{_SECOND}Z$"


@lru_cache(maxsize=512)
def _validator(group: str, version: str, kind: str) -> Any:
    shape = built_in_shape(group, version, kind)
    if not shape.name:
        return None
    defined: Json = {}
    _collect(shape.name, defined)
    return _compiled({"$ref": f"#/$defs/{shape.name}", "$defs": defined})


def _compiled(schema: Json) -> Any:
    # In draft 4, as in Go, 1.0 is not an integer.
    return jsonschema_rs.Draft4Validator(schema)


def _collect(name: str, into: Json) -> None:
    if name in into:
        return
    into[name] = {}
    into[name] = _normal(definitions()[name], name, into)


def _normal(schema: Json, name: str, into: Json) -> Json:
    """A strict JSON schema that is valid for objects in normal form."""
    if name in _ANYTHING or not schema:
        return {}
    if name == _QUANTITY:
        return {"type": "string", "pattern": _NORMAL_QUANTITY}
    if name == _TIME:
        return {"type": "string", "pattern": _NORMAL_TIME}
    if name == _MICRO_TIME:
        return {"type": "string", "pattern": _NORMAL_MICRO_TIME}
    if name == _INT_OR_STRING:
        return {"type": ["integer", "string"]}
    if "$ref" in schema:
        reference = schema["$ref"]
        if reference in _ANYTHING:
            return {}
        _collect(reference, into)
        return {"$ref": f"#/$defs/{reference}"}
    kind = schema.get("type")
    if kind == "array":
        return {"type": "array", "items": _normal(schema.get("items") or {}, "", into)}
    if "properties" in schema:
        members = _normal_members(schema, zeros().get(name, ()), into)
        return {"type": "object", "properties": members, "additionalProperties": False}
    if kind == "object":
        values = schema.get("additionalProperties")
        return {"type": "object", "additionalProperties": _normal(values, "", into) if values else {}}
    if kind == "string" and schema.get("format") == "byte":
        return {"type": "string", "pattern": r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"}
    if kind == "integer":
        most = 2**31 if schema.get("format") == "int32" else 2**63
        return {"type": "integer", "minimum": -most, "maximum": most - 1}
    return {"type": kind} if kind in ("string", "integer", "number", "boolean") else {}


def _normal_members(schema: Json, left_out: Collection[str], into: Json) -> Json:
    """The members of an object; Go leaves out zeros, empty lists and empty maps of optional ones."""
    needed = set(schema.get("required") or ())
    members = {}
    for key, value in schema["properties"].items():
        member = _normal(value, "", into)
        if key in left_out:
            member = {**member, "not": {"enum": ["", 0, False]}}
        if key in _NULL_IS_KEPT:
            member = {"anyOf": [member, {"type": "null"}]}
        if key not in needed and value.get("type") == "array":
            member = {**member, "minItems": 1}
        if key not in needed and "additionalProperties" in value:
            member = {**member, "minProperties": 1}
        members[key] = member
    return members


def conform(document: Json, group: str, version: str, kind: str, old: Json | None = None) -> tuple[Json, list[str]]:
    """The object in normal form, and the fields that its kind does not have.

    Parts that are the very same as in `old`, the object before a change, are in normal form already.
    """
    validator = _validator(group, version, kind)
    if validator is None or validator.is_valid(_changed(document, old) if old else document):
        return document, []
    walker = _Walker()
    return walker.value(document, built_in_shape(group, version, kind), "", old), walker.unknown


def conform_metadata(metadata: Json, path: str, old: Json) -> tuple[Json, list[str]]:
    """The metadata of a custom resource in normal form, and the fields that metadata does not have."""
    validator = _metadata_validator()
    if validator.is_valid(_other_members(metadata, old)):
        return metadata, []
    walker = _Walker()
    conformed: Json = walker.value(metadata, meta_shape(), path, old)
    return conformed, walker.unknown


def _changed(document: Json, old: Json) -> Json:
    """An object without the members, and members of members, that it shares with the old one."""
    return {key: _other_members(value, old.get(key)) for key, value in _other_members(document, old).items()}


def _other_members(value: Any, old: Any) -> Any:
    """A map without the members that it shares with the old one."""
    if not old or not isinstance(value, dict) or not isinstance(old, dict):
        return value
    return {key: item for key, item in value.items() if item is None or item is not old.get(key)}


@lru_cache(maxsize=1)
def _metadata_validator() -> Any:
    defined: Json = {}
    _collect(META, defined)
    return _compiled({"$ref": f"#/$defs/{META}", "$defs": defined})


class _Walker:
    """Puts a value into normal form, and notes the fields that its kind does not have."""

    def __init__(self) -> None:
        self.unknown: list[str] = []

    def value(self, value: Any, shape: Shape, path: str, old: Any = None) -> Any:
        if value is old and old is not None:
            return value
        if shape.name == _QUANTITY:
            return _quantity(value, path)
        if shape.name == _TIME:
            return rfc3339(_time(value, path))
        if shape.name == _MICRO_TIME:
            return rfc3339_micro(_micro_time(value, path))
        if shape.name in _ANYTHING:
            return value
        if shape.name == _INT_OR_STRING:
            if isinstance(value, bool) or not isinstance(value, int | str):
                raise wrong_type(path, "a number or a string", value)
            return value
        match shape.type:
            case "object":
                return self._object(value, shape, path, old)
            case "array":
                return self._list(value, shape, path, old)
            case "string":
                if not isinstance(value, str):
                    raise wrong_type(path, "a string", value)
                if shape.schema.get("format") == "byte":
                    _check_base64(value, path)
            case "integer":
                _check_integer(value, shape, path)
            case "boolean":
                if not isinstance(value, bool):
                    raise wrong_type(path, "a boolean", value)
            case "number":
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise wrong_type(path, "a number", value)
        return value

    def _list(self, value: Any, shape: Shape, path: str, old: Any) -> Any:
        if not isinstance(value, list):
            raise wrong_type(path, "an array", value)
        before = {id(item) for item in old} if isinstance(old, list) else ()
        return [
            item if id(item) in before else self.value(item, shape.items, f"{path}[{at}]")
            for at, item in enumerate(value)
        ]

    def _object(self, value: Any, shape: Shape, path: str, old: Any) -> Any:
        if not isinstance(value, dict):
            raise wrong_type(path, "an object", value)
        if not shape.properties:
            return self._map(value, shape.values, path)
        needed = shape.schema.get("required") or ()
        zero_members = zeros().get(shape.name, ())
        before = old if isinstance(old, dict) else {}
        result: Json = {}
        for key, item in value.items():
            where = f"{path}.{key}" if path else key
            if key not in shape.properties:
                self.unknown.append(where)
                continue
            if item is None:
                if key in _NULL_IS_KEPT:
                    result[key] = None
                continue
            child = shape.child(key)
            conformed = self.value(item, child, where, before.get(key))
            if conformed in ([], {}) and key not in needed and _left_out(child):
                continue
            if not conformed and key in zero_members:
                continue
            result[key] = conformed
        return result

    def _map(self, value: Json, values: Shape, path: str) -> Json:
        """A map of values of one shape; a null is no entry, or an empty string."""
        zero = {"string": ""}.get(values.type)
        items = ((key, zero if item is None else item) for key, item in value.items())
        return {key: self.value(item, values, f"{path}[{key}]") for key, item in items if item is not None}


def _check_integer(value: Any, shape: Shape, path: str) -> None:
    bits = 32 if shape.schema.get("format") == "int32" else 64
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(path, "an integer", value)
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise Misfit(path, f"{value} does not fit into {bits} bits")


def _check_base64(value: str, path: str) -> None:
    wrong = re.search(r"[^A-Za-z0-9+/=\n\r]", value)
    if wrong is not None or len(value.rstrip("\n")) % 4:
        at = wrong.start() if wrong is not None else len(value) - len(value) % 4
        raise Misfit(path, f"illegal base64 data at input byte {at}")


def _quantity(value: Any, path: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Misfit(path, _QUANTITY_RULE)
    try:
        return quantity.canonical(str(value))
    except ValueError:
        raise Misfit(path, _QUANTITY_RULE) from None


def _time(value: Any, path: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
        # A time of another zone may lie beyond the years that there are.
        return moment.astimezone(UTC) if moment.tzinfo is not None else moment
    except (ValueError, TypeError, OverflowError):
        raise Misfit(path, f"{shown(value)} is not a time as in RFC 3339, such as 2006-01-02T15:04:05Z") from None


def _micro_time(value: Any, path: str) -> datetime:
    moment = _time(value, path)
    if not _MICROSECONDS.match(value[19:]):
        raise Misfit(path, f"{shown(value)} is not a time with microseconds, such as 2006-01-02T15:04:05.000000Z")
    return moment


def _left_out(shape: Shape) -> bool:
    """Whether Go leaves out an empty value: a list or a map, but not a struct."""
    return shape.type == "array" or "additionalProperties" in shape.schema
