"""Checks of CEL rules in schemas (`x-kubernetes-validations`): syntax, type, and fields."""

from __future__ import annotations

import re

from spinney.api.meta import Json
from spinney.cel.expressions import CompileError, compile_expression
from spinney.embedded.apiserver.errors import FieldError, required, shown, unsupported
from spinney.embedded.apiserver.schema.cel_rules import escaped

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
# A variable and the fields behind it, as long as none of them is a call.
_CHAIN = re.compile(r"(?<![\w.])(self|oldSelf)((?:\.[A-Za-z_]\w*(?!\w|\s*\())+)")
_CEL_TYPES = {
    "integer": "INT",
    "string": "STRING",
    "boolean": "BOOL",
    "array": "LIST",
    "object": "MAP",
    "number": "DOUBLE",
}
_VARIABLES = ("self", "oldSelf")
_STRING: Json = {"type": "string"}
_ANYTHING: Json = {}


def check_rules(schema: Json, path: str, *, root: bool) -> list[FieldError]:
    """Check the rules of one node of a schema."""
    errors: list[FieldError] = []
    for at, entry in enumerate(schema.get("x-kubernetes-validations") or ()):
        errors += _rule(entry, schema, f"{path}.x-kubernetes-validations[{at}]", root=root)
    return errors


def _rule(entry: Json, schema: Json, path: str, *, root: bool) -> list[FieldError]:
    text, message = entry.get("rule", ""), entry.get("message", "")
    if not text.strip():
        return [required(f"{path}.rule", "rule is not specified")]
    if "\n" in text.strip() and not message:
        return [required(f"{path}.message", "message must be specified if rule contains line breaks")]
    errors: list[FieldError] = []
    if entry.get("reason") and entry["reason"] not in _REASONS:
        errors.append(unsupported(f"{path}.reason", entry["reason"], _REASONS))
    if errors:
        return errors
    problem = _problem(text, schema, "BOOL", "cel expression must evaluate to a bool", root=root)
    if problem:
        errors.append(_wrong(entry, f"{path}.rule", problem))
    message = entry.get("messageExpression")
    if message:
        problem = _problem(message, schema, "STRING", "messageExpression must evaluate to a string", root=root)
        if problem.startswith("compilation"):
            problem = f"messageExpression {problem}"
        if problem:
            errors.append(_wrong(entry, f"{path}.messageExpression", problem))
    return errors


def _wrong(entry: Json, field: str, problem: str) -> FieldError:
    return FieldError("FieldValueInvalid", field, f"Invalid value: {shown(entry)}: {problem}")


def _problem(text: str, schema: Json, wanted: str, otherwise: str, *, root: bool) -> str:
    try:
        result_type = compile_expression(text, _VARIABLES).result_type
    except CompileError as error:
        return f"compilation failed: {error}"
    unknown, field_type = _fields(text, schema, root=root)
    if unknown:
        return f"compilation failed: {unknown}"
    return "" if (field_type or result_type) in (wanted, "DYN") else otherwise


def _without_texts(text: str) -> str:
    """A rule with its string literals blanked out."""
    return re.sub(r"'[^']*'|\"[^\"]*\"", lambda quoted: " " * len(quoted[0]), text)


def _fields(text: str, schema: Json, *, root: bool) -> tuple[str, str]:
    """What is wrong with the fields that a rule names, and its type where it is nothing but a field.

    The engine sees objects as maps of anything, so members that the schema lacks are looked for here.
    """
    bare = _without_texts(text)
    kind = ""
    for match in _CHAIN.finditer(bare):
        node = _with_head(schema) if root else schema
        for name in match[2].split(".")[1:]:
            below = _below(node, name)
            if below is None:
                return f"undefined field '{name}' in {match[0]}", ""
            node = below
        if match[0] == bare.strip() and not node.get("nullable") and not node.get("format"):
            kind = _CEL_TYPES.get(node.get("type", ""), "")
    return "", kind


def _with_head(schema: Json) -> Json:
    """A schema with the members that every object has for rules."""
    names = {"type": "object", "properties": dict.fromkeys(("name", "generateName"), _STRING)}
    head = {"apiVersion": _STRING, "kind": _STRING, "metadata": names}
    return {**schema, "properties": {**(schema.get("properties") or {}), **head}}


def _below(node: Json, name: str) -> Json | None:
    """The schema of a member for rules: None without one, any type where it is unknown."""
    if node.get("type") != "object" or node.get("x-kubernetes-embedded-resource"):
        return _ANYTHING
    if isinstance(node.get("additionalProperties"), dict):
        return dict(node["additionalProperties"])
    for member, schema in (node.get("properties") or {}).items():
        if escaped(member) == name:
            return dict(schema)
    return None
