"""Checks of the schemas of custom resources: they are structural, and their defaults valid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from spinney.api import patterns
from spinney.api.meta import Json
from spinney.cel.expressions import CompileError
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, one_of, required, unsupported
from spinney.embedded.apiserver.resources.validation.schema_rules import check_rules
from spinney.embedded.apiserver.schema.cel_rules import Rules, rules_below
from spinney.embedded.apiserver.schema.shapes import schemas_below
from spinney.embedded.apiserver.schema.structural_checks import Checker

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES = ("atomic", "set", "map")
_MAP_TYPES = ("atomic", "granular")
_JUNCTORS = ("allOf", "anyOf", "oneOf")
_UNSUPPORTED = ("id", "definitions", "dependencies", "patternProperties")
# Fields that a schema below `anyOf` and the like may not set, and the value they must have.
_NOT_NARROWING = {
    **dict.fromkeys(("title", "description", "type"), "empty"),
    **dict.fromkeys(("default", "additionalProperties"), "undefined"),
    "nullable": "false",
}
_FORMATS = frozenset(
    (
        *("bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5"),
        *("isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date"),
        *("duration", "datetime", "date-time", "int32", "int64", "float", "double", "k8s-short-name", "k8s-long-name"),
    )
)


def check_root(schema: Json, path: str) -> list[FieldError]:
    """Check the schema of a version."""
    errors: list[FieldError] = []
    if not schema.get("type"):
        errors.append(required(f"{path}.type", "must not be empty at the root"))
    elif schema["type"] != "object":
        return [invalid(f"{path}.type", schema["type"], "must be object at the root")]
    errors += _typed_head(schema.get("properties") or {}, f"{path}.properties")
    metadata = (schema.get("properties") or {}).get("metadata")
    if isinstance(metadata, dict) and not _plain_metadata(metadata):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        errors.append(forbidden_field(f"{path}.properties[metadata]", detail))
    return errors + _node(schema, path, root=True)


def _typed_head(properties: Json, path: str) -> list[FieldError]:
    """Check the types of `apiVersion`, `kind` and `metadata` in a schema."""
    return [
        invalid(f"{path}[{name}].type", properties[name]["type"], f"must be {kind}")
        for name, kind in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object"))
        if (properties.get(name) or {}).get("type", kind) != kind
    ]


def _plain_metadata(schema: Json) -> bool:
    properties = schema.get("properties") or {}
    return set(schema) <= {"type", "properties", "description"} and set(properties) <= {"name", "generateName"}


def _node(schema: Any, path: str, *, root: bool = False) -> list[FieldError]:
    if not isinstance(schema, dict):
        return []
    if schema.get("$ref"):
        return [forbidden_field(f"{path}.$ref", "$ref is not supported")]
    errors = _junctors(schema, path)
    errors += [*_type(schema, path, root=root), *_keywords(schema, path), *_list(schema, path), *_map(schema, path)]
    if not errors and "default" in schema:
        errors += _default(schema, f"{path}.default")
    errors += check_rules(schema, path, root=root)
    for name, item in (schema.get("properties") or {}).items():
        if not (root and name == "metadata"):
            errors += _node(item, f"{path}.properties[{name}]")
    for key in ("items", "additionalProperties"):
        errors += _node(schema.get(key), f"{path}.{key}")
    return errors


def _type(schema: Json, path: str, *, root: bool) -> list[FieldError]:
    kind = schema.get("type", "")
    if kind:
        return one_of(f"{path}.type", kind, _TYPES)
    if root or schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string"):
        return []
    what = "array items" if path.endswith(".items") else "specified object fields"
    return [required(f"{path}.type", f"must not be empty for {what}")]


def _keywords(schema: Json, path: str) -> list[FieldError]:
    errors = [forbidden_field(f"{path}.{key}", f"{key} is not supported") for key in _UNSUPPORTED if schema.get(key)]
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        errors.append(invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
    if _is_bare_resource(schema):
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        errors.append(required(f"{path}.properties", detail))
    if schema.get("x-kubernetes-embedded-resource") and schema.get("type") not in ("object", None, ""):
        detail = "must be object if x-kubernetes-embedded-resource is true"
        errors.append(invalid(f"{path}.type", schema["type"], detail))
    if schema.get("type") == "array" and "items" not in schema:
        errors.append(required(f"{path}.items", "must be specified"))
    if "properties" in schema and isinstance(schema.get("additionalProperties"), dict):
        detail = "additionalProperties and properties are mutual exclusive"
        errors.append(forbidden_field(f"{path}.additionalProperties", detail))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(forbidden_field(f"{path}.uniqueItems", detail))
    pattern = schema.get("pattern")
    if pattern:
        try:
            patterns.check(pattern)
        except patterns.PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            errors.append(invalid(f"{path}.pattern", pattern, detail))
    return errors


def _is_bare_resource(schema: Json) -> bool:
    """Whether a schema is an embedded resource that keeps no fields."""
    kept = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("properties")
    return bool(schema.get("x-kubernetes-embedded-resource")) and not kept


def _list(schema: Json, path: str) -> list[FieldError]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    if kind is None:
        return []
    if kind not in _LIST_TYPES:
        return [unsupported(f"{path}.x-kubernetes-list-type", kind, _LIST_TYPES)]
    if schema.get("type") != "array":
        detail = "must be array if x-kubernetes-list-type is specified"
        return [invalid(f"{path}.type", schema.get("type", ""), detail)]
    items = schema.get("items") or {}
    if kind == "set" and items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
        return [invalid(f"{path}.items.x-kubernetes-map-type", items.get("x-kubernetes-map-type"), detail)]
    if kind != "map":
        return []
    errors: list[FieldError] = []
    if not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        errors.append(required(f"{path}.x-kubernetes-list-map-keys", detail))
    if items.get("type", "object") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        return [*errors, invalid(f"{path}.items.type", items["type"], detail)]
    return errors + [error for at, key in enumerate(keys) for error in _map_key(items, key, at, path)]


def _map(schema: Json, path: str) -> list[FieldError]:
    kind = schema.get("x-kubernetes-map-type")
    if kind is None:
        return []
    if kind not in _MAP_TYPES:
        return [unsupported(f"{path}.x-kubernetes-map-type", kind, _MAP_TYPES)]
    if schema.get("type") != "object":
        detail = "must be object if x-kubernetes-map-type is specified"
        return [invalid(f"{path}.type", schema.get("type", ""), detail)]
    return []


def _map_key(items: Json, key: str, at: int, path: str) -> list[FieldError]:
    properties = items.get("properties") or {}
    if key not in properties:
        detail = "entries must all be names of item properties"
        return [invalid(f"{path}.x-kubernetes-list-map-keys[{at}]", key, detail)]
    if key in (items.get("required") or ()) or "default" in properties[key]:
        return []
    detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
    return [required(f"{path}.items.properties[{key}].default", detail)]


def _junctors(schema: Json, path: str) -> list[FieldError]:
    any_type = bool(schema.get("x-kubernetes-int-or-string"))
    errors: list[FieldError] = []
    for junctor in _JUNCTORS:
        for at, part in enumerate(schema.get(junctor) or ()):
            errors += _junctor(part, f"{path}.{junctor}[{at}]", any_type)
    return errors + _junctor(schema.get("not"), f"{path}.not", any_type)


def _junctor(schema: Any, path: str, int_or_string: bool) -> list[FieldError]:
    """Refuse types, defaults and descriptions below `anyOf` and the like."""
    if not isinstance(schema, dict):
        return []
    errors = [
        forbidden_field(f"{path}.{key}", f"must be {wanted} to be structural")
        for key, wanted in _NOT_NARROWING.items()
        if key in schema and not (key == "type" and int_or_string)
    ]
    for name, item in (schema.get("properties") or {}).items():
        errors += _junctor(item, f"{path}.properties[{name}]", int_or_string=False)
    return errors


def _default(schema: Json, path: str) -> list[FieldError]:
    if schema["default"] is None:
        return []
    checker = Checker()
    checker.check(schema["default"], schema, "")
    errors = []
    for error in checker.errors:
        errors.append(replace(error, field=f"{path}.{error.field}" if error.field else path))
    if not errors and _has_unknown(schema["default"], schema):
        errors.append(invalid(path, schema["default"], "must not have unknown fields"))
    if not errors and rules_below(schema):
        errors += _broken_rules(schema, path)
    return errors


def _broken_rules(schema: Json, path: str) -> list[FieldError]:
    """Check a default against the rules of its schema."""
    try:
        errors = Rules(schema).check(schema["default"], None, path)
    except CompileError:
        return []
    return errors


def _has_unknown(value: Any, schema: Json) -> bool:
    if isinstance(value, list):
        return any(_has_unknown(item, schema.get("items") or {}) for item in value)
    properties = schema.get("properties")
    if not isinstance(value, dict) or properties is None or schema.get("x-kubernetes-preserve-unknown-fields"):
        return False
    return any(key not in properties or _has_unknown(item, properties[key]) for key, item in value.items())


def unknown_formats(schema: Json) -> Iterator[str]:
    """Formats that Kubernetes does not know."""
    if schema.get("format") and schema["format"] not in _FORMATS:
        yield schema["format"]
    for below in schemas_below(schema):
        yield from unknown_formats(below)
