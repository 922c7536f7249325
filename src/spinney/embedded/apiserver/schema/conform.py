"""Conformity: what Go's decoder does to an object of a built-in kind. Types are checked, unknown fields are found and
dropped, quantities and times are put into their one form, and what is empty is left out.

Most objects need none of this. A compiled schema of the normal form says so in a few microseconds; only others are
walked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

import jsonschema_rs

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.api.times import rfc3339, rfc3339_micro
from spinney.embedded.apiserver.errors import bad_request
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
# Times that Go keeps as a value and not by a pointer: where there is none, it writes null.
_NULL_IS_KEPT = frozenset(("lastProbeTime",))
_QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_NORMAL_QUANTITY = r"^(0|-?([1-9]\d{0,2}(Ki|Mi|Gi|Ti|Pi|Ei)|([1-9]\d*)?[1-9]0{0,2}[numkMGTPE]?))$"
_NORMAL_MICRO_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"
_MICROSECONDS = re.compile(r"^\.\d{6}")
_NORMAL_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"


@lru_cache(maxsize=512)
def _validator(group: str, version: str, kind: str) -> Any:
    shape = built_in_shape(group, version, kind)
    if not shape.name:
        return None
    defined: Json = {}
    _collect(shape.name, defined)
    return _compiled({"$ref": f"#/$defs/{shape.name}", "$defs": defined})


def _compiled(schema: Json) -> Any:
    # In the fourth draft 1.0 is no integer, and neither is it for Go.
    return jsonschema_rs.Draft4Validator(schema)


def _collect(name: str, into: Json) -> None:
    if name in into:
        return
    into[name] = {}
    into[name] = _normal(definitions()[name], name, into)


def _normal(schema: Json, name: str, into: Json) -> Json:
    """A strict JSON schema that holds for objects already in normal form."""
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
        needed = set(schema.get("required") or ())
        members = {}
        left_out = zeros().get(name, ())
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


@dataclass(slots=True)
class Findings:
    """What a walk found: fields that the kind does not have."""

    unknown: list[str] = field(default_factory=list)


def conform(document: Json, group: str, version: str, kind: str, known: Json | None = None) -> tuple[Json, list[str]]:
    """The object in normal form, and the fields that its kind does not have.

    Parts that are the very same as in `known`, the object before a change, are in normal form already.
    """
    validator = _validator(group, version, kind)
    known = known or {}
    changed = {key: _other_members(value, known.get(key)) for key, value in _other_members(document, known).items()}
    if validator is None or validator.is_valid(changed):
        return document, []
    findings = Findings()
    walker = _Walker(f'{kind} in version "{version}" cannot be handled as a {kind}', findings)
    shape = built_in_shape(group, version, kind)
    return walker.value(document, shape, "", shape.name.rpartition(".")[2], known), findings.unknown


def conform_metadata(metadata: Json, kind: str, version: str, known: Json) -> tuple[Json, list[str]]:
    """The metadata of a custom resource in normal form, and the fields that metadata does not have."""
    validator = _metadata_validator()
    if validator.is_valid(_other_members(metadata, known)):
        return metadata, []
    findings = Findings()
    walker = _Walker(f'{kind} in version "{version}" cannot be handled as a {kind}', findings)
    made: Json = walker.value(metadata, meta_shape(), "", "ObjectMeta", known)
    return made, findings.unknown


def _other_members(value: Any, known: Any) -> Any:
    """A map without the members that it shares with a known one."""
    if not known or not isinstance(value, dict) or not isinstance(known, dict):
        return value
    return {key: item for key, item in value.items() if item is None or item is not known.get(key)}


@lru_cache(maxsize=1)
def _metadata_validator() -> Any:
    defined: Json = {}
    _collect(META, defined)
    return _compiled({"$ref": f"#/$defs/{META}", "$defs": defined})


class _Walker:
    def __init__(self, refusal: str, findings: Findings) -> None:
        self._refusal = refusal
        self._findings = findings

    def value(self, value: Any, shape: Shape, path: str, owner: str, known: Any = None) -> Any:
        if value is known and known is not None:
            return value
        if shape.name == _QUANTITY:
            return self._quantity(value)
        if shape.name == _TIME:
            return rfc3339(self._time(value))
        if shape.name == _MICRO_TIME:
            return rfc3339_micro(self._time(value, "2006-01-02T15:04:05.000000Z07:00"))
        if shape.name in _ANYTHING:
            return value
        if shape.name == _INT_OR_STRING:
            if isinstance(value, bool) or not isinstance(value, int | str):
                raise self._mismatch(value, path, owner, "intstr.IntOrString")
            return value
        match shape.type:
            case "object":
                return self._object(value, shape, path, owner, known)
            case "array":
                return self._list(value, shape, path, owner, known)
            case "string":
                if not isinstance(value, str):
                    raise self._mismatch(value, path, owner, "string")
                if shape.schema.get("format") == "byte":
                    self._check_base64(value)
            case "integer":
                return self._integer(value, shape, path, owner)
            case "boolean":
                if not isinstance(value, bool):
                    raise self._mismatch(value, path, owner, "bool")
            case "number":
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise self._mismatch(value, path, owner, "float64")
        return value

    def _list(self, value: Any, shape: Shape, path: str, owner: str, known: Any) -> Any:
        if not isinstance(value, list):
            raise self._mismatch(value, path, owner, _go_list(shape))
        before = {id(item) for item in known} if isinstance(known, list) else ()
        return [
            item if id(item) in before else self.value(item, shape.items, f"{path}[{at}]", owner)
            for at, item in enumerate(value)
        ]

    def _object(self, value: Any, shape: Shape, path: str, owner: str, known: Any) -> Any:
        go_name = shape.name.rpartition(".")[2]
        if not isinstance(value, dict):
            raise self._mismatch(value, path, owner, _go_type(shape) if go_name else "map[string]string")
        if not shape.properties:
            zero = {"string": ""}.get(shape.values.type)
            given = ((key, zero if item is None else item) for key, item in value.items())
            return {key: self.value(item, shape.values, path, owner) for key, item in given if item is not None}
        needed = shape.schema.get("required") or ()
        zero_members = zeros().get(shape.name, ())
        before = known if isinstance(known, dict) else {}
        result: Json = {}
        for key, item in value.items():
            if key not in shape.properties:
                self._findings.unknown.append(f"{path}.{key}".lstrip("."))
                continue
            if item is None:
                if key in _NULL_IS_KEPT:
                    result[key] = None
                continue
            child = shape.child(key)
            made = self.value(item, child, f"{path}.{key}", go_name, before.get(key))
            if made in ([], {}) and key not in needed and _left_out(child):
                continue
            if not made and key in zero_members:
                continue
            result[key] = made
        return result

    def _integer(self, value: Any, shape: Shape, path: str, owner: str) -> Any:
        go_type = shape.schema.get("format", "int64")
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._mismatch(value, path, owner, go_type)
        limit = 2**31 if go_type == "int32" else 2**63
        if not -limit <= value < limit:
            raise self._mismatch(value, path, owner, go_type, f"number {value}")
        return value

    def _check_base64(self, value: str) -> None:
        wrong = re.search(r"[^A-Za-z0-9+/=\n\r]", value)
        if wrong is not None or len(value.rstrip("\n")) % 4:
            at = wrong.start() if wrong is not None else len(value) - len(value) % 4
            raise bad_request(f"{self._refusal}: illegal base64 data at input byte {at}")

    def _quantity(self, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise bad_request(f"{self._refusal}: {_QUANTITY_RULE}")
        try:
            return quantity.canonical(str(value))
        except ValueError:
            raise bad_request(f"{self._refusal}: {_QUANTITY_RULE}") from None

    def _time(self, value: Any, form: str = "2006-01-02T15:04:05Z07:00") -> datetime:
        try:
            moment = datetime.fromisoformat(value)
        except (ValueError, TypeError):
            wrong = f'parsing time "{value}" as "{form}": cannot parse "{value}" as "2006"'
            raise bad_request(f"{self._refusal}: {wrong}") from None
        if form.endswith(".000000Z07:00") and not _MICROSECONDS.match(value[19:]):
            wrong = f'parsing time "{value}" as "{form}": cannot parse "{value[19:]}" as ".000000"'
            raise bad_request(f"{self._refusal}: {wrong}")
        return moment

    def _mismatch(self, value: Any, path: str, owner: str, go_type: str, what: str = "") -> Exception:
        field_path = re.sub(r"\[\d+\]", "", path).lstrip(".")
        where = f"Go struct field {owner}.{field_path} of type {go_type}"
        return bad_request(f"{self._refusal}: json: cannot unmarshal {what or _json_type(value)} into {where}")


def _left_out(shape: Shape) -> bool:
    """Whether Go leaves an empty value out: lists and maps, but not a struct that has no members at all."""
    return shape.type == "array" or "additionalProperties" in shape.schema


def _go_type(shape: Shape) -> str:
    """The name of a Go type, with its package: `v1.PodSpec`."""
    return ".".join(shape.name.split(".")[-2:])


def _go_list(shape: Shape) -> str:
    return f"[]{_go_type(shape.items)}" if shape.items.name else f"[]{shape.items.type}"


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {value}" if isinstance(value, float) else "number"
    names: dict[type, str] = {str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")
