"""Checks of CEL rules in schemas (`x-kubernetes-validations`): syntax, type, and fields."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spinney.api.meta import Json
from spinney.cel.expressions import TYPES, CompileError, compile_expression
from spinney.embedded.apiserver.errors import FieldError, invalid, required, shown, unsupported
from spinney.embedded.apiserver.schema.cel_rules import escaped

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^']*)'\]")
_PATH = re.compile(r"(?:\.[A-Za-z_][\w-]*|\['[^']*'\])+")
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
_SCALARS = {"integer": "int", "string": "string", "boolean": "bool"}
# A variable for each type that a field can have.
_FIELD_VARIABLES = {type_name: f"field_{at}" for at, type_name in enumerate(TYPES) if type_name != "dyn"}
_STRING: Json = {"type": "string"}
_ANYTHING: Json = {}


def check_rules(schema: Json, path: str, *, root: bool) -> list[FieldError]:
    """Check the rules of one node of a schema."""
    errors: list[FieldError] = []
    for at, entry in enumerate(schema.get("x-kubernetes-validations") or ()):
        errors += _rule(entry, schema, f"{path}.x-kubernetes-validations[{at}]", root=root)
    return errors


def uncorrelated(schema: Json, path: str, list_path: str = "") -> Iterator[FieldError]:
    """Rules that use `oldSelf` in lists whose elements cannot be matched with the old ones."""
    for at, entry in enumerate(schema.get("x-kubernetes-validations") or () if list_path else ()):
        if re.search(r"\boldSelf\b", entry.get("rule", "")):
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {list_path}"
            yield invalid(f"{path}.x-kubernetes-validations[{at}].rule", entry["rule"], detail)
    for name, below in (schema.get("properties") or {}).items():
        yield from uncorrelated(below, f"{path}.properties[{name}]", list_path)
    if isinstance(schema.get("items"), dict):
        list_field = list_path or ("" if schema.get("x-kubernetes-list-type") == "map" else path)
        yield from uncorrelated(schema["items"], f"{path}.items", list_field)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from uncorrelated(schema["additionalProperties"], f"{path}.additionalProperties", list_path)


def _rule(entry: Json, schema: Json, path: str, *, root: bool) -> list[FieldError]:
    text, message = entry.get("rule", ""), entry.get("message", "")
    if not text.strip():
        return [required(f"{path}.rule", "rule is not specified")]
    if "\n" in text.strip() and not message:
        return [required(f"{path}.message", "message must be specified if rule contains line breaks")]
    errors: list[FieldError] = []
    if message and not message.strip():
        errors.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip():
        errors.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    if entry.get("reason") and entry["reason"] not in _REASONS:
        errors.append(unsupported(f"{path}.reason", entry["reason"], _REASONS))
    if entry.get("fieldPath") and not _leads_somewhere(entry["fieldPath"], schema):
        errors.append(invalid(f"{path}.fieldPath", entry["fieldPath"], "must be a valid path"))
    if entry.get("optionalOldSelf") and not re.search(r"\boldSelf\b", text):
        errors.append(invalid(f"{path}.optionalOldSelf", True, "may not be set if oldSelf is not used in rule"))
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


def _leads_somewhere(path: str, schema: Json) -> bool:
    """Whether a path like `.spec.names['a']` leads to a field of the schema."""
    if not _PATH.fullmatch(path):
        return False
    node: Json | None = schema
    for match in _STEP.finditer(path):
        name = match[1] or match[2]
        properties = (node or {}).get("properties") or {}
        extra = (node or {}).get("additionalProperties")
        node = properties.get(name) or (extra if match[2] and isinstance(extra, dict) else None)
        if node is None:
            return False
    return True


def _problem(text: str, schema: Json, wanted: str, otherwise: str, *, root: bool) -> str:
    try:
        result_type = _result_type(text, schema)
    except CompileError as error:
        return f"compilation failed: {error}"
    unknown, field_type = _fields(text, schema, root=root)
    problem = unknown or _operand_problem(text, schema, root=root)
    if problem:
        return f"compilation failed: {problem}"
    return "" if (field_type or result_type) in (wanted, "DYN") else otherwise


def _result_type(text: str, schema: Json) -> str:
    """The type of a rule's value; `self` is typed where the schema allows one scalar type only."""
    untyped = compile_expression(text, _VARIABLES).result_type
    type_name = _SCALARS.get(schema.get("type", ""))
    if type_name is None or schema.get("format") or schema.get("nullable") or schema.get("x-kubernetes-int-or-string"):
        return untyped
    entries = schema["x-kubernetes-validations"]
    if any(e.get("optionalOldSelf") and text in (e.get("rule"), e.get("messageExpression")) for e in entries):
        return untyped
    try:
        return compile_expression(text, _VARIABLES, tuple((name, type_name) for name in _VARIABLES)).result_type
    except CompileError as error:
        # Kubernetes compares numbers of different types; this engine does so only for values without a type.
        if "double" in str(error) or "uint" in str(error):
            return untyped
        raise


def _operand_problem(text: str, schema: Json, *, root: bool) -> str:
    """What is wrong with the operands of a rule; each field is replaced by a variable of its type."""
    typed, bare = text, _without_texts(text)
    for match in reversed(list(_CHAIN.finditer(bare))):
        node = _with_head(schema) if root else schema
        for name in match[2].split(".")[1:]:
            node = _below(node, name) or _ANYTHING
        variable = _FIELD_VARIABLES.get(_cel_type(node))
        if variable and not bare[: match.start()].rstrip().endswith("has("):
            typed = typed[: match.start()] + variable + typed[match.end() :]
    try:
        compile_expression(typed, _VARIABLES, tuple((name, kind) for kind, name in _FIELD_VARIABLES.items()))
    except CompileError as error:
        # Numbers of different types can be compared, and a type that is not known may be the right one.
        if error.operand_types and not {"double", "uint", "dyn"} & set(error.operand_types):
            return error.problem
    return ""


def _cel_type(schema: Json) -> str:
    """CEL's type of a field, empty where the schema allows several."""
    kind = schema.get("type", "")
    marks = ("nullable", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
    if any(schema.get(mark) for mark in marks) or (schema.get("format") and kind != "integer"):
        return ""
    items = schema.get("items") if kind == "array" else schema.get("additionalProperties")
    if not isinstance(items, dict):
        return _SCALARS.get(kind, "")
    inner = _cel_type(items)
    inner = inner if inner in _SCALARS.values() else "dyn"
    return f"list({inner})" if kind == "array" else f"map(string, {inner})"


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
