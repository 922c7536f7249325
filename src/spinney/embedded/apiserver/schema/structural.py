"""Structural schemas of custom resources: compiled checks, pruning and defaults.

As for built-in kinds, a compiled strict schema answers for most objects in a few microseconds; only those that it
refuses are walked.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import is_
from typing import Any

import jsonschema_rs
import msgspec

from spinney.api import patterns
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import too_large
from spinney.embedded.apiserver.schema.conform import conform_metadata
from spinney.embedded.apiserver.schema.shapes import schemas_below

_COMBINATORS = ("allOf", "anyOf", "oneOf")
# Compiled patterns need linear time, too.
_LINEAR = jsonschema_rs.RegexOptions()
# Escapes, groups with flags and named classes mean something else in Go.
_DIFFERS_FROM_GO = re.compile(r"\\[A-Za-z0-9]|\(\?|\[\[:")
# Patterns of so many states, and texts of so many characters, are left to the compiled check.
_MOST_STATES = 300
_MOST_COMPILED = 256
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
    """A JSON schema that is valid exactly for objects that need neither pruning nor refusal."""
    result = _strict_limits(schema)
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]
    elif kind:
        result["type"] = [kind, "null"] if schema.get("nullable") else kind
    if schema.get("nullable") and "enum" in result:
        result["enum"] = [*result["enum"], None]
    if "required" in schema:
        result["required"] = schema["required"]
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields")
    if schema.get("x-kubernetes-embedded-resource"):
        # Embedded metadata is always walked, because it has a schema of its own.
        result["not"] = {}
        return result
    if "properties" in schema:
        result["properties"] = {name: strict_schema(item) for name, item in schema["properties"].items()}
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        result["additionalProperties"] = strict_schema(extra)
    elif kind == "object" and not open_ended and extra is not True:
        result["additionalProperties"] = False
    if isinstance(schema.get("items"), dict):
        result["items"] = strict_schema(schema["items"])
    if any(_has_pattern(schema[key]) for key in (*_COMBINATORS, "not") if key in schema):
        return {"not": {}}
    for key in _COMBINATORS:
        if key in schema:
            result[key] = [_value_schema(item) for item in schema[key]]
    if "not" in schema:
        result["not"] = _value_schema(schema["not"])
    return result


def _strict_limits(schema: Json) -> Json:
    """The limits on a value, with exclusive bounds as JSON schema writes them and patterns that are safe to compile."""
    limits: Json = {key: schema[key] for key in _LIMITS if key in schema}
    for key in ("minimum", "maximum"):
        exclusive = "exclusive" + key.capitalize()
        if schema.get(exclusive) is True:
            limits[exclusive] = limits.pop(key, None)
    if "pattern" in schema and not _is_compilable(schema["pattern"]):
        limits["pattern"] = "$.^"  # matches no string, so each is walked
    elif "pattern" in schema:
        # A longer text is walked, where the work is counted.
        limits["maxLength"] = min(limits.get("maxLength", _MOST_COMPILED), _MOST_COMPILED)
    return limits


@lru_cache(maxsize=1024)
def _is_compilable(pattern: str) -> bool:
    """Whether the compiled check of a pattern means what Go means by it."""
    if _DIFFERS_FROM_GO.search(pattern) or patterns.states(pattern) > _MOST_STATES:
        return False
    try:
        jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=_LINEAR)
    except ValueError:
        return False
    return True


def _has_pattern(schema: Any) -> bool:
    """Whether there is a pattern at any depth: one text may have to match any number of them, which is counted."""
    if isinstance(schema, list):
        return any(map(_has_pattern, schema))
    if not isinstance(schema, dict):
        return False
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        return True
    return any(map(_has_pattern, schema.values()))


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
    """The strict schema, compiled."""
    try:
        return jsonschema_rs.validator_for(strict_schema(schema), pattern_options=_LINEAR)
    except ValueError:
        # One that JSON schema does not allow, such as a multiple of 0: every object is walked.
        return jsonschema_rs.validator_for({"not": {}})


# As much as a body may have, in bytes; a default takes a few more for its name.
_MOST_DEFAULTS = 3 * 1024 * 1024
_DEFAULT_OVERHEAD = 32


def has_defaults(schema: Json) -> bool:
    """Whether a schema sets any default, at any depth."""
    return "default" in schema or any(map(has_defaults, schemas_below(schema)))


class Defaults:
    """The defaults of a schema; made once per version of a definition."""

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
        """The value with defaults filled in; the same object if there are none to fill in."""
        return self._fill(value, _Room())

    def _fill(self, value: Any, room: _Room) -> Any:
        if isinstance(value, dict):
            return self._fill_map(value, room)
        if isinstance(value, list) and self._items is not None:
            filled = [self._items._fill(item, room) for item in value]
            return value if all(map(is_, filled, value)) else filled
        return value

    def _fill_map(self, value: Json, room: _Room) -> Json:
        changes: Json = {}
        for name, below in self._members.items():
            member = value.get(name)
            if below._value is not None and (name not in value or (member is None and not below._nullable)):
                room.take(len(below._value))
                member = msgspec.json.decode(below._value)
            filled = below._fill(member, room)
            if filled is not value.get(name):
                changes[name] = filled
        if self._extra is not None:
            for name, item in value.items():
                if name not in self._members and name not in self._others:
                    filled = self._extra._fill(item, room)
                    if filled is not item:
                        changes[name] = filled
        return {**value, **changes} if changes else value


class _Room:
    """What the defaults of one object may take: a short list may ask for the same large defaults in every item."""

    def __init__(self) -> None:
        self._left = _MOST_DEFAULTS

    def take(self, size: int) -> None:
        self._left -= size + _DEFAULT_OVERHEAD
        if self._left < 0:
            raise too_large(_MOST_DEFAULTS)


def prune(value: Any, schema: Json, path: str, dropped: list[str]) -> Any:
    """The value without fields that the schema does not have; their paths are added to `dropped`."""
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [prune(item, schema["items"], f"{path}[{at}]", dropped) for at, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    keeps = schema.get("x-kubernetes-preserve-unknown-fields") or (not schema.get("type") and not properties)
    embedded = schema.get("x-kubernetes-embedded-resource")
    result: Json = {}
    for name, item in value.items():
        where = f"{path}.{name}" if path else name
        if name in properties:
            result[name] = prune(item, properties[name], where, dropped)
        elif isinstance(extra, dict):
            result[name] = prune(item, extra, where, dropped)
        elif embedded and name == "metadata" and isinstance(item, dict):
            result[name] = _embedded_metadata(item, where, dropped)
        elif keeps or extra is True or (embedded and name in ("apiVersion", "kind", "metadata")):
            result[name] = item
        else:
            dropped.append(where)
    return result


def _embedded_metadata(metadata: Json, path: str, dropped: list[str]) -> Json:
    conformed, unknown = conform_metadata(metadata, path, {})
    dropped += unknown
    return conformed


def without_nulls(value: Any, schema: Json) -> Any:
    """The value without nulls that its schema does not allow; these count as absent."""
    if isinstance(value, list):
        return [without_nulls(item, schema.get("items") or {}) for item in value]
    if not isinstance(value, dict):
        return value
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    result: Json = {}
    for name, item in value.items():
        below = properties.get(name) or (extra if isinstance(extra, dict) else None)
        if item is None and below is not None and not below.get("nullable"):
            continue
        result[name] = without_nulls(item, below or {})
    return result
