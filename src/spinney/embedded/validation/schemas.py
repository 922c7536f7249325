"""The schemas of custom resources: structural all the way down, with defaults that fit and rules that compile."""

from __future__ import annotations

import re
from typing import Any

from spinney.api.meta import Json
from spinney.embedded import cel
from spinney.embedded.errors import FieldError, forbidden_field, invalid, required, shown, unsupported
from spinney.embedded.structural import Checker

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES = ("atomic", "set", "map")
_JUNCTORS = ("allOf", "anyOf", "oneOf")
# What rules find below an object that carries metadata, whether its schema says so or not.
_IMPLICIT = ("apiVersion", "kind", "metadata")


def check_root(schema: Json, path: str) -> list[FieldError]:
    """A whole schema: an object whose metadata is left to Kubernetes."""
    found: list[FieldError] = []
    if not schema.get("type"):
        found.append(required(f"{path}.type", "must not be empty at the root"))
    elif schema["type"] != "object":
        return [invalid(f"{path}.type", schema["type"], "must be object at the root")]
    metadata = (schema.get("properties") or {}).get("metadata")
    if isinstance(metadata, dict) and not _plain_metadata(metadata):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        found.append(forbidden_field(f"{path}.properties[metadata]", detail))
    return found + _node(schema, path, root=True)


def _plain_metadata(schema: Json) -> bool:
    properties = schema.get("properties") or {}
    return set(schema) <= {"type", "properties", "description"} and set(properties) <= {"name", "generateName"}


def _node(schema: Any, path: str, *, root: bool = False) -> list[FieldError]:
    if not isinstance(schema, dict):
        return []
    if schema.get("$ref"):
        return [forbidden_field(f"{path}.$ref", "$ref is not supported")]
    found = [*_type(schema, path, root=root), *_keywords(schema, path), *_list(schema, path)]
    for junctor in _JUNCTORS:
        for at, part in enumerate(schema.get(junctor) or ()):
            found += _junctor(part, f"{path}.{junctor}[{at}]", bool(schema.get("x-kubernetes-int-or-string")))
    if not found and "default" in schema:
        found += _default(schema, f"{path}.default")
    found += _rules(schema, path, root=root)
    for name, item in (schema.get("properties") or {}).items():
        if not (root and name == "metadata"):
            found += _node(item, f"{path}.properties[{name}]")
    for key in ("items", "additionalProperties"):
        found += _node(schema.get(key), f"{path}.{key}")
    return found


def _type(schema: Json, path: str, *, root: bool) -> list[FieldError]:
    kind = schema.get("type", "")
    if kind:
        return [] if kind in _TYPES else [unsupported(f"{path}.type", kind, _TYPES)]
    if root or schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string"):
        return []
    what = "array items" if path.endswith(".items") else "specified object fields"
    return [required(f"{path}.type", f"must not be empty for {what}")]


def _keywords(schema: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if schema.get("type") == "array" and "items" not in schema:
        found.append(required(f"{path}.items", "must be specified"))
    if "properties" in schema and isinstance(schema.get("additionalProperties"), dict):
        detail = "additionalProperties and properties are mutual exclusive"
        found.append(forbidden_field(f"{path}.additionalProperties", detail))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(forbidden_field(f"{path}.uniqueItems", detail))
    pattern = schema.get("pattern")
    if pattern:
        try:
            re.compile(pattern)
        except re.error as error:
            detail = f"must be a valid regular expression, but isn't: error parsing regexp: {_go_words(error, pattern)}"
            found.append(invalid(f"{path}.pattern", pattern, detail))
    return found


def _go_words(error: re.error, pattern: str) -> str:
    text = str(error)
    if text.startswith("missing ), unterminated subpattern"):
        return f"missing closing ): `{pattern}`"
    if text.startswith("unterminated character set"):
        return f"missing closing ]: `{pattern[error.pos :]}`"
    if text.startswith("unbalanced parenthesis"):
        return f"unexpected ): `{pattern}`"
    if text.startswith(("nothing to repeat", "multiple repeat")):
        return f"missing argument to repetition operator: `{pattern[error.pos :][:1]}`"
    return text


def _list(schema: Json, path: str) -> list[FieldError]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    if kind is None:
        return []
    if kind not in _LIST_TYPES:
        return [unsupported(f"{path}.x-kubernetes-list-type", kind, _LIST_TYPES)]
    items = schema.get("items") or {}
    if kind == "set" and items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
        return [invalid(f"{path}.items.x-kubernetes-map-type", items.get("x-kubernetes-map-type"), detail)]
    if kind != "map":
        return []
    if not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        return [required(f"{path}.x-kubernetes-list-map-keys", detail)]
    return [error for at, key in enumerate(keys) for error in _map_key(items, key, at, path)]


def _map_key(items: Json, key: str, at: int, path: str) -> list[FieldError]:
    properties = items.get("properties") or {}
    if key not in properties:
        detail = "entries must all be names of item properties"
        return [invalid(f"{path}.x-kubernetes-list-map-keys[{at}]", key, detail)]
    if key in (items.get("required") or ()) or "default" in properties[key]:
        return []
    detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
    return [required(f"{path}.items.properties[{key}].default", detail)]


def _junctor(schema: Any, path: str, int_or_string: bool) -> list[FieldError]:
    """What stands below anyOf and its like may only narrow: no types, no defaults."""
    if not isinstance(schema, dict):
        return []
    found: list[FieldError] = []
    for key in ("type", "default", "nullable"):
        if key in schema and not (key == "type" and int_or_string):
            found.append(forbidden_field(f"{path}.{key}", "must be empty to be structural"))
    for name, item in (schema.get("properties") or {}).items():
        found += _junctor(item, f"{path}.properties[{name}]", int_or_string=False)
    return found


def _default(schema: Json, path: str) -> list[FieldError]:
    if schema["default"] is None:
        return []
    checker = Checker()
    checker.check(schema["default"], schema, "")
    found = []
    for error in checker.errors:
        # A default has no name of its own, and Kubernetes leaves its place in the sentence empty.
        message = re.sub(r": must be of type", ":  in body must be of type", error.message, count=1)
        field = f"{path}.{error.field}" if error.field else path
        found.append(FieldError("FieldValueInvalid", field, message))
    return found


def _rules(schema: Json, path: str, *, root: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for at, entry in enumerate(schema.get("x-kubernetes-validations") or ()):
        where = f"{path}.x-kubernetes-validations[{at}].rule"
        text = entry.get("rule", "")
        if not text.strip():
            found.append(required(where, "rule is not specified"))
            continue
        problem = _rule_problem(text, schema, root=root)
        if problem:
            message = f"Invalid value: {_shown_rule(entry)}: {problem}"
            found.append(FieldError("FieldValueInvalid", where, message))
    return found


def _rule_problem(text: str, schema: Json, *, root: bool) -> str:
    try:
        kind = cel.checked(text, schema)
    except cel.BadRule as error:
        return f"compilation failed: {error}"
    unknown = _unknown_field(text, schema, root=root)
    if unknown:
        return f"compilation failed: {unknown}"
    return "" if kind in ("BOOL", "DYN") else "cel expression must evaluate to a bool"


def _unknown_field(text: str, schema: Json, *, root: bool) -> str:
    """The engine sees objects as maps of anything, so members that the schema lacks are looked for here."""
    properties = schema.get("properties")
    if schema.get("type") != "object" or not properties or schema.get("x-kubernetes-embedded-resource"):
        return ""
    known = {cel.escaped(name) for name in properties} | set(_IMPLICIT if root else ())
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", lambda quoted: " " * len(quoted[0]), text)
    for match in re.finditer(r"(?<![\w.])(?:self|oldSelf)\.([A-Za-z_]\w*)(?!\w|\s*\()", bare):
        if match[1] not in known:
            return _pointed(text, match.start(1) - 1, f"undefined field '{match[1]}'")
    return ""


def _pointed(text: str, at: int, message: str) -> str:
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1)
    return f"ERROR: <input>:{line}:{column + 1}: {message}\n | {text.splitlines()[line - 1]}\n | {'.' * column}^"


def _shown_rule(entry: Json) -> str:
    """A rule as Go prints its struct, with the signs escaped that Go's JSON escapes."""
    text = shown(
        {
            "Rule": entry.get("rule", ""),
            "Message": entry.get("message", ""),
            "MessageExpression": entry.get("messageExpression", ""),
            "Reason": entry.get("reason"),
            "FieldPath": entry.get("fieldPath", ""),
            "OptionalOldSelf": entry.get("optionalOldSelf"),
        }
    )
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
