"""Check an object against its structural schema, with Kubernetes' messages."""

from __future__ import annotations

import math
from types import NoneType
from typing import Any

import msgspec

from spinney.api import formats, naming, patterns
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import (
    FieldError,
    duplicate,
    invalid,
    required,
    too_long,
    too_many,
    unsupported,
    wrong_type,
)

# Every value of the largest body, with some to spare; patterns count by their states and the length of the text.
_MOST_CHECKS = 80_000
_STEPS_OF_A_CHECK = 100
_MOST_WHOLE = 1 << 53


_JSON_TYPES: dict[type, str] = {
    NoneType: "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


class _TooMuchWork(Exception):
    """The schema asks for more checks of one object than anybody waits for."""


class Checker:
    """Collects the errors of a value; errors in parts that an update does not change are ignored.

    Schemas below `anyOf` and its like are tried with checkers of their own, which share the number of checks left:
    they become more with each level.
    """

    def __init__(self, left: list[int] | None = None) -> None:
        self.errors: list[FieldError] = []
        self._left = left if left is not None else [_MOST_CHECKS]

    def check(self, value: Any, schema: Json, path: str, old: Any = None) -> None:
        """Check a value and all below it."""
        try:
            self._check(value, schema, path, old)
        except _TooMuchWork:
            self.errors.append(invalid(path or "<nil>", "", "takes too long to check: simplify the schema"))

    def _spend(self, checks: int) -> None:
        self._left[0] -= checks
        if self._left[0] < 0:
            raise _TooMuchWork

    def _check(self, value: Any, schema: Json, path: str, old: Any = None) -> None:
        self._spend(1)
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
        actual = json_type(value)
        detail = f'{name or "<nil>"} in body must be of type {wanted}: "{actual}"'
        if not name:
            detail = f'must be of type {wanted}: "{actual}"'
        self.errors.append(wrong_type(name, actual, detail))
        return False

    def _combinators(self, value: Any, schema: Json, name: str) -> None:
        where = f'"{name}"' if name else '""'
        before = len(self.errors)
        for part in schema.get("allOf") or ():
            self._check(value, part, name)
        if len(self.errors) > before:
            self.errors.append(invalid("<nil>", "", f"{where} must validate all the schemas (allOf)"))
        if schema.get("anyOf") and not any(self._holds(value, part) for part in schema["anyOf"]):
            self.errors.append(invalid("<nil>", "", f"{where} must validate at least one schema (anyOf)"))
            self._closest(value, schema["anyOf"], name)
        if schema.get("oneOf"):
            count = sum(self._holds(value, part) for part in schema["oneOf"])
            if count != 1:
                summary = "Found none valid" if count == 0 else f"Found {count} valid alternatives"
                detail = f"{where} must validate one and only one schema (oneOf). {summary}"
                self.errors.append(invalid("<nil>", "", detail))
                if count == 0:
                    self._closest(value, schema["oneOf"], name)
        if schema.get("not") and self._holds(value, schema["not"]):
            self.errors.append(invalid("<nil>", "", f"{where} must not validate the schema (not)"))

    def _closest(self, value: Any, parts: list[Json], name: str) -> None:
        checker = Checker(self._left)
        checker._check(value, parts[0], name)
        self.errors += checker.errors

    def _holds(self, value: Any, schema: Json) -> bool:
        checker = Checker(self._left)
        checker._check(value, schema, "")
        return not checker.errors

    def _string(self, value: str, schema: Json, name: str) -> None:
        if "maxLength" in schema and len(value) > schema["maxLength"]:
            self.errors.append(too_long(name, schema["maxLength"]))
        elif "minLength" in schema and len(value) < schema["minLength"]:
            least = schema["minLength"]
            self.errors.append(invalid(name, value, f"{name} in body should be at least {least} chars long"))
        elif "pattern" in schema and not self._matches(schema["pattern"], value):
            self.errors.append(invalid(name, value, f"{name} in body should match '{schema['pattern']}'"))
        form = schema.get("format")
        if form and not formats.fits(value, form):
            detail = f'{name} in body must be of type {form}: "{value}"'
            self.errors.append(wrong_type(name, value, detail))

    def _matches(self, pattern: str, value: str) -> bool:
        self._spend(patterns.steps(pattern, value) // _STEPS_OF_A_CHECK)
        return patterns.found_in(pattern, value)

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
            old_by_key = {_identity(item, keys): item for item in before} if keys else {}
            for at, item in enumerate(value):
                was = old_by_key.get(_identity(item, keys)) if keys else before[at] if at < len(before) else None
                self._check(item, items, f"{name}[{at}]", was)
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

    def _embedded(self, value: Json, name: str) -> None:
        """Check that an embedded object has a kind and an API version."""
        version, kind = value.get("apiVersion"), value.get("kind")
        if version is None:
            self.errors.append(required(f"{name}.apiVersion"))
        elif str(version).count("/") > 1:
            self.errors.append(invalid(f"{name}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
        if kind is None:
            self.errors.append(required(f"{name}.kind"))
        else:
            problems = naming.dns_1035_problems(str(kind).lower())
            problems_text = (f"may have mixed case, but should otherwise match: {problem}" for problem in problems)
            self.errors += [invalid(f"{name}.kind", kind, problem) for problem in problems_text]

    def _object(self, value: Json, schema: Json, name: str, old: Any) -> None:
        if schema.get("x-kubernetes-embedded-resource"):
            self._embedded(value, name)
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
        properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            if item is None and key in (schema.get("required") or ()):
                continue
            if key in properties:
                self._check(item, properties[key], prefix + key, before.get(key))
            elif isinstance(extra, dict):
                self._check(item, extra, prefix + key, before.get(key))


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
            if isinstance(value, float):
                # As in Go: a whole number, and so small that every whole number around it can be told from it.
                return value.is_integer() and abs(value) < _MOST_WHOLE
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
    return True


def json_type(value: Any) -> str:
    """The name JSON schema has for a value's type."""
    return _JSON_TYPES[type(value)]


def _nullable(schema: Json, key: str) -> bool:
    return bool(((schema.get("properties") or {}).get(key) or {}).get("nullable"))


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _identity(item: Any, keys: list[str] | tuple[str, ...]) -> str:
    if keys and isinstance(item, dict):
        return msgspec.json.encode([item.get(key) for key in keys]).decode()
    return msgspec.json.encode(item, order="deterministic").decode()
