"""Structural schemas: what a definition lets its objects hold. Pruning, defaults, and errors with Kubernetes' words.

As for built-in kinds, a compiled strict schema answers for most objects in a few microseconds; only those that it
refuses are walked.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from operator import is_
from typing import Any

import jsonschema_rs
import msgspec

from spinney.api.meta import Json
from spinney.embedded.errors import (
    FieldError,
    duplicate,
    invalid,
    required,
    too_long,
    too_many,
    unsupported,
    wrong_type,
)

_COMBINATORS = ("allOf", "anyOf", "oneOf")
_LIMITS = (
    "enum",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
)


def strict_schema(schema: Json) -> Json:
    """A JSON schema that holds exactly for objects that need neither pruning nor refusal."""
    result: Json = {key: schema[key] for key in _LIMITS if key in schema}
    for key in ("minimum", "maximum"):
        exclusive = "exclusive" + key.capitalize()
        if schema.get(exclusive) is True:
            result[exclusive] = result.pop(key, None)
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]
    elif kind:
        result["type"] = [kind, "null"] if schema.get("nullable") else kind
    if schema.get("nullable") and "enum" in result:
        result["enum"] = [*result["enum"], None]
    if "required" in schema:
        result["required"] = schema["required"]
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource")
    if "properties" in schema:
        result["properties"] = {name: strict_schema(item) for name, item in schema["properties"].items()}
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        result["additionalProperties"] = strict_schema(extra)
    elif kind == "object" and not open_ended and extra is not True:
        result["additionalProperties"] = False
    if isinstance(schema.get("items"), dict):
        result["items"] = strict_schema(schema["items"])
    for key in _COMBINATORS:
        if key in schema:
            result[key] = [_value_schema(item) for item in schema[key]]
    if "not" in schema:
        result["not"] = _value_schema(schema["not"])
    return result


def _value_schema(schema: Json) -> Json:
    """A schema below a combinator: it checks values, and never prunes."""
    opened: Json = _opened(strict_schema(schema))
    return opened


def _opened(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_opened(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _opened(item) if key in ("properties", "items", "not", *_COMBINATORS) or isinstance(item, dict) else item
        for key, item in schema.items()
        if not (key == "additionalProperties" and item is False)
    }


def compiled(schema: Json) -> Any:
    """The strict schema, ready to be asked."""
    return jsonschema_rs.validator_for(strict_schema(schema))


def has_defaults(schema: Json) -> bool:
    """Whether a schema sets any default, at any depth."""
    if "default" in schema:
        return True
    below = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(has_defaults(item) for item in below if isinstance(item, dict))


class Defaults:
    """The defaults of a schema, where there are any. Made once per version of a definition."""

    def __init__(self, schema: Json) -> None:
        self._nullable: bool = schema.get("nullable", False)
        self._value: bytes | None = msgspec.json.encode(schema["default"]) if "default" in schema else None
        self._members = {
            name: Defaults(item) for name, item in (schema.get("properties") or {}).items() if has_defaults(item)
        }
        self._others = frozenset(schema.get("properties") or ()) - self._members.keys()
        items, extra = schema.get("items"), schema.get("additionalProperties")
        self._items = Defaults(items) if isinstance(items, dict) and has_defaults(items) else None
        self._extra = Defaults(extra) if isinstance(extra, dict) and has_defaults(extra) else None

    def fill(self, value: Any) -> Any:
        """The value with what is absent filled in; where nothing is, the very same value."""
        if isinstance(value, dict):
            return self._fill_map(value)
        if isinstance(value, list) and self._items is not None:
            filled = [self._items.fill(item) for item in value]
            return value if all(map(is_, filled, value)) else filled
        return value

    def _fill_map(self, value: Json) -> Json:
        changes: Json = {}
        for name, below in self._members.items():
            found = value.get(name)
            if below._value is not None and (name not in value or (found is None and not below._nullable)):
                found = msgspec.json.decode(below._value)
            filled = below.fill(found)
            if filled is not value.get(name):
                changes[name] = filled
        if self._extra is not None:
            for name, item in value.items():
                if name not in self._members and name not in self._others:
                    filled = self._extra.fill(item)
                    if filled is not item:
                        changes[name] = filled
        return {**value, **changes} if changes else value


def prune(value: Any, schema: Json, path: str, dropped: list[str]) -> Any:
    """The value without fields that the schema does not know; their paths are noted."""
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [prune(item, schema["items"], f"{path}[{at}]", dropped) for at, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    known, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    keeps = schema.get("x-kubernetes-preserve-unknown-fields") or (not schema.get("type") and not known)
    embedded = schema.get("x-kubernetes-embedded-resource")
    result: Json = {}
    for name, item in value.items():
        where = f"{path}.{name}" if path else name
        if name in known:
            result[name] = prune(item, known[name], where, dropped)
        elif isinstance(extra, dict):
            result[name] = prune(item, extra, where, dropped)
        elif keeps or extra is True or (embedded and name in ("apiVersion", "kind", "metadata")):
            result[name] = item
        else:
            dropped.append(where)
    return result


def without_nulls(value: Any, schema: Json) -> Any:
    """The value without the nulls that its schema does not allow, which count as nothing given."""
    if isinstance(value, list):
        return [without_nulls(item, schema.get("items") or {}) for item in value]
    if not isinstance(value, dict):
        return value
    known, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    result: Json = {}
    for name, item in value.items():
        below = known.get(name) or (extra if isinstance(extra, dict) else None)
        if item is None and below is not None and not below.get("nullable"):
            continue
        result[name] = without_nulls(item, below or {})
    return result


class Checker:
    """Finds what is wrong with a value; what an update leaves as it was is forgiven."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def check(self, value: Any, schema: Json, path: str, old: Any = None) -> None:
        """Check a value and all below it."""
        if old is not None and value == old and path:
            return
        name = path
        if value is None:
            if not schema.get("nullable") and (schema.get("type") or schema.get("x-kubernetes-int-or-string")):
                self._type(value, schema, name)
            return
        fits = self._type(value, schema, name)
        self._combinators(value, schema, name)
        if "enum" in schema and value not in schema["enum"]:
            shown = [item if isinstance(item, str) else msgspec.json.encode(item).decode() for item in schema["enum"]]
            self.errors.append(unsupported(name, value, shown))
        if not fits:
            return
        if isinstance(value, str):
            self._string(value, schema, name)
        elif isinstance(value, bool):
            pass
        elif isinstance(value, int | float):
            self._number(value, schema, name)
        elif isinstance(value, list):
            self._list(value, schema, name, old)
        elif isinstance(value, dict):
            self._object(value, schema, name, old)

    def _type(self, value: Any, schema: Json, name: str) -> bool:
        wanted = schema.get("type")
        if schema.get("x-kubernetes-int-or-string"):
            if isinstance(value, int | str) and not isinstance(value, bool):
                return True
            wanted = "integer,string"
        elif not wanted or _fits(value, wanted):
            return True
        found = json_type(value)
        detail = f'{name or "<nil>"} in body must be of type {wanted}: "{found}"'
        if not name:
            detail = f'must be of type {wanted}: "{found}"'
        self.errors.append(wrong_type(name, found, detail))
        return False

    def _combinators(self, value: Any, schema: Json, name: str) -> None:
        where = f'"{name}"' if name else '""'
        for part in schema.get("allOf") or ():
            self.check(value, part, name)
        if schema.get("anyOf") and not any(_holds(value, part) for part in schema["anyOf"]):
            self.errors.append(invalid("<nil>", "", f"{where} must validate at least one schema (anyOf)"))
            self._closest(value, schema["anyOf"], name)
        if schema.get("oneOf"):
            count = sum(_holds(value, part) for part in schema["oneOf"])
            if count != 1:
                found = "Found none valid" if count == 0 else f"Found {count} valid alternatives"
                detail = f"{where} must validate one and only one schema (oneOf). {found}"
                self.errors.append(invalid("<nil>", "", detail))
                if count == 0:
                    self._closest(value, schema["oneOf"], name)
        if schema.get("not") and _holds(value, schema["not"]):
            self.errors.append(invalid("<nil>", "", f"{where} must not validate the schema (not)"))

    def _closest(self, value: Any, parts: list[Json], name: str) -> None:
        checker = Checker()
        checker.check(value, parts[0], name)
        self.errors += checker.errors

    def _string(self, value: str, schema: Json, name: str) -> None:
        if "maxLength" in schema and len(value) > schema["maxLength"]:
            self.errors.append(too_long(name, schema["maxLength"]))
        elif "minLength" in schema and len(value) < schema["minLength"]:
            least = schema["minLength"]
            self.errors.append(invalid(name, value, f"{name} in body should be at least {least} chars long"))
        elif "pattern" in schema and not _pattern(schema["pattern"]).search(value):
            self.errors.append(invalid(name, value, f"{name} in body should match '{schema['pattern']}'"))
        form = schema.get("format")
        if form in _FORMATS and not _FORMATS[form].search(value):
            detail = f'{name} in body must be of type {form}: "{value}"'
            self.errors.append(wrong_type(name, value, detail))

    def _number(self, value: float, schema: Json, name: str) -> None:
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is not None:
            if schema.get("exclusiveMinimum") and value <= low:
                self.errors.append(invalid(name, value, f"{name} in body should be greater than {_number(low)}"))
            elif value < low:
                detail = f"{name} in body should be greater than or equal to {_number(low)}"
                self.errors.append(invalid(name, value, detail))
        if high is not None:
            if schema.get("exclusiveMaximum") and value >= high:
                self.errors.append(invalid(name, value, f"{name} in body should be less than {_number(high)}"))
            elif value > high:
                detail = f"{name} in body should be less than or equal to {_number(high)}"
                self.errors.append(invalid(name, value, detail))
        step = schema.get("multipleOf")
        if step and math.fmod(value, step):
            self.errors.append(invalid(name, value, f"{name} in body should be a multiple of {_number(step)}"))

    def _list(self, value: list[Any], schema: Json, name: str, old: Any) -> None:
        if "maxItems" in schema and len(value) > schema["maxItems"]:
            self.errors.append(too_many(name, len(value), schema["maxItems"]))
        if "minItems" in schema and len(value) < schema["minItems"]:
            detail = f"{name} in body should have at least {schema['minItems']} items"
            self.errors.append(invalid(name, len(value), detail))
        before = old if isinstance(old, list) else []
        items = schema.get("items")
        if isinstance(items, dict):
            keys = schema.get("x-kubernetes-list-map-keys") or ()
            known = {_identity(item, keys): item for item in before} if keys else {}
            for at, item in enumerate(value):
                was = known.get(_identity(item, keys)) if keys else before[at] if at < len(before) else None
                self.check(item, items, f"{name}[{at}]", was)
        self._unique(value, schema, name)

    def _unique(self, value: list[Any], schema: Json, name: str) -> None:
        kind = schema.get("x-kubernetes-list-type")
        if kind not in ("set", "map"):
            return
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        seen: set[str] = set()
        for at, item in enumerate(value):
            mark = _identity(item, keys)
            if mark in seen:
                shown = {key: item[key] for key in keys if key in item} if keys and isinstance(item, dict) else item
                self.errors.append(duplicate(f"{name}[{at}]", shown))
            seen.add(mark)

    def _object(self, value: Json, schema: Json, name: str, old: Any) -> None:
        if schema.get("x-kubernetes-embedded-resource"):
            for key in ("apiVersion", "kind"):
                if not value.get(key):
                    self.errors.append(required(f"{name}.{key}", "must not be empty"))
        before = old if isinstance(old, dict) else {}
        count = len(value)
        if "maxProperties" in schema and count > schema["maxProperties"]:
            self.errors.append(too_many(name, count, schema["maxProperties"]))
        if "minProperties" in schema and count < schema["minProperties"]:
            detail = f"{name} in body should have at least {schema['minProperties']} properties"
            self.errors.append(invalid(name, count, detail))
        prefix = f"{name}." if name else ""
        for key in schema.get("required") or ():
            if value.get(key) is None and not (key in value and _nullable(schema, key)):
                self.errors.append(required(prefix + key))
        known, extra = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            if item is None and key in (schema.get("required") or ()):
                continue
            if key in known:
                self.check(item, known[key], prefix + key, before.get(key))
            elif isinstance(extra, dict):
                self.check(item, extra, prefix + key, before.get(key))


def _holds(value: Any, schema: Json) -> bool:
    checker = Checker()
    checker.check(value, schema, "")
    return not checker.errors


def _fits(value: Any, wanted: str) -> bool:
    match wanted:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return not isinstance(value, bool) and (
                isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            )
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
    return True


def json_type(value: Any) -> str:
    """The name JSON schema has for a value's type."""
    if value is None:
        return "null"
    names: dict[type, str] = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
    }
    return names[type(value)]


def _nullable(schema: Json, key: str) -> bool:
    return bool(((schema.get("properties") or {}).get(key) or {}).get("nullable"))


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _identity(item: Any, keys: list[str] | tuple[str, ...]) -> str:
    if keys and isinstance(item, dict):
        return msgspec.json.encode([item.get(key) for key in keys]).decode()
    return msgspec.json.encode(item, order="deterministic").decode()


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    """A pattern as Go reads it: `$` is the end and not before a last line break, and digits and letters are ASCII."""
    text = text.replace(r"\z", r"\Z")
    if text.endswith("$") and not text.endswith(r"\$"):
        text = text[:-1] + r"\Z"
    return re.compile(text, re.ASCII)


_FORMATS: dict[str, re.Pattern[str]] = {
    "date-time": re.compile(r"^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z"),
    "date": re.compile(r"^\d{4}-\d\d-\d\d\Z"),
    "uuid": re.compile(r"^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}\Z"),
    "ipv4": re.compile(r"^(\d{1,3}\.){3}\d{1,3}\Z"),
    "duration": re.compile(r"^-?\d+(\.\d+)?\s*(ns|us|µs|ms|s|m|h|d|w)?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))*\Z"),
    "byte": re.compile(r"^[A-Za-z0-9+/]*={0,2}\Z"),
}
