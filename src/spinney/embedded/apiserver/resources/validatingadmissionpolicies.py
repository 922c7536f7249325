"""Validating admission policies and their bindings."""

from __future__ import annotations

import re

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, duplicate, forbidden_field, invalid, required, unsupported
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector
from spinney.embedded.apiserver.resources.webhookconfigurations import check_conditions, check_expression, check_rule

_VALUES = ("object", "oldObject", "request", "namespaceObject")
_MATCHES = ("Equivalent", "Exact")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")


def check_policy(document: Json) -> list[FieldError]:
    """A ValidatingAdmissionPolicy."""
    spec = document.get("spec") or {}
    found: list[FieldError] = []
    if spec.get("failurePolicy") not in ("Fail", "Ignore"):
        found.append(unsupported("spec.failurePolicy", spec.get("failurePolicy"), ("Fail", "Ignore")))
    if spec.get("paramKind") is not None:
        found += _param_kind(spec["paramKind"])
    if spec.get("matchConstraints") is None:
        found.append(required("spec.matchConstraints"))
    else:
        found += _resources(spec["matchConstraints"], "spec.matchConstraints")
        if not spec["matchConstraints"].get("resourceRules"):
            found.append(required("spec.matchConstraints.resourceRules"))
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        why = "validations or auditAnnotations must contain at least one item"
        found += [required("spec.validations", why), required("spec.auditAnnotations", why)]
    values = (*_VALUES, "params") if spec.get("paramKind") else _VALUES
    conditions = spec.get("matchConditions") or ()
    found += check_conditions(conditions, (*values, "authorizer"), "spec.matchConditions")
    return found + _expressions(document["metadata"].get("name", ""), spec, values)


def _expressions(name: str, spec: Json, values: tuple[str, ...]) -> list[FieldError]:
    found: list[FieldError] = []
    if spec.get("variables"):
        values = (*values, "variables")
    known: list[str] = []
    for at, variable in enumerate(spec.get("variables") or ()):
        where, text = f"spec.variables[{at}]", variable.get("expression", "")
        found += _variable_name(variable.get("name", ""), f"{where}.name")
        if not text.strip():
            found.append(required(f"{where}.expression", "expression is not specified"))
        else:
            undefined = _undefined(text, known, f"{where}.expression")
            found += undefined or check_expression(text, (*values, "authorizer"), f"{where}.expression")
        known.append(variable.get("name", ""))
    for at, rule in enumerate(spec.get("validations") or ()):
        undefined = _undefined(rule.get("expression", ""), known, f"spec.validations[{at}].expression")
        found += undefined or _validation(rule, values, f"spec.validations[{at}]")
    keys: set[str] = set()
    for at, annotation in enumerate(spec.get("auditAnnotations") or ()):
        found += _annotation(annotation, (*values, "authorizer"), name, f"spec.auditAnnotations[{at}]")
        if annotation.get("key") in keys:
            found.append(duplicate(f"spec.auditAnnotations[{at}].key", annotation["key"]))
        keys.add(annotation.get("key", ""))
    return found


def _param_kind(kind: Json) -> list[FieldError]:
    version, found = kind.get("apiVersion", ""), list[FieldError]()
    if not version:
        found.append(required("spec.paramKind.apiVersion"))
    elif version.count("/") > 1:
        found.append(invalid("spec.paramKind.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    return found if kind.get("kind") else [*found, required("spec.paramKind.kind")]


def _resources(resources: Json, where: str) -> list[FieldError]:
    """Which objects a policy or its binding is about."""
    policy = resources.get("matchPolicy", "Equivalent")
    found = [] if policy in _MATCHES else [unsupported(f"{where}.matchPolicy", policy, _MATCHES)]
    for key in ("namespaceSelector", "objectSelector"):
        found += check_selector(resources.get(key), f"{where}.{key}")
    for key in ("resourceRules", "excludeResourceRules"):
        for at, rule in enumerate(resources.get(key) or ()):
            found += check_rule(rule, f"{where}.{key}[{at}]")
    return found


def _variable_name(name: str, where: str) -> list[FieldError]:
    if not name.strip():
        return [required(where, "name is not specified")]
    return [] if name.isidentifier() and name.isascii() else [invalid(where, name, "must be a valid CEL identifier")]


def _undefined(text: str, known: list[str], where: str) -> list[FieldError]:
    """The first variable of an expression that is not there, or not yet."""
    for used in re.finditer(r"\bvariables\.([A-Za-z_]\w*)", text):
        if used[1] not in known:
            at = used.start() + len("variables")
            line = text.count("\n", 0, at) + 1
            column = at - (text.rfind("\n", 0, at) + 1)
            told = f"ERROR: <input>:{line}:{column + 1}: undefined field '{used[1]}'"
            pointed = f"{told}\n | {text.splitlines()[line - 1]}\n | {'.' * column}^"
            return [invalid(where, text, f"compilation failed: {pointed}")]
    return []


def _annotation(annotation: Json, values: tuple[str, ...], policy: str, where: str) -> list[FieldError]:
    key, text = annotation.get("key", ""), annotation.get("valueExpression", "")
    full = f"{policy}/{key}" if policy else key
    found = [invalid(f"{where}.key", full, problem) for problem in naming.qualified_problems(full)]
    if not text.strip():
        return [*found, required(f"{where}.valueExpression", "valueExpression is not specified")]
    return found + check_expression(text, values, f"{where}.valueExpression", "STRING", "NULL")


def _validation(rule: Json, values: tuple[str, ...], where: str) -> list[FieldError]:
    expression = rule.get("expression", "")
    if not expression.strip():
        return [required(f"{where}.expression", "expression is not specified")]
    found = check_expression(expression, (*values, "authorizer"), f"{where}.expression", "BOOL")
    if rule.get("messageExpression"):
        # What is told may not depend on rights.
        found += check_expression(rule["messageExpression"], values, f"{where}.messageExpression", "STRING")
    if "\n" in rule.get("message", "").strip():
        found.append(invalid(f"{where}.message", rule["message"], "must not contain line breaks"))
    if rule.get("reason") and rule["reason"] not in _REASONS:
        found.append(unsupported(f"{where}.reason", rule["reason"], _REASONS))
    return found


def check_binding(document: Json) -> list[FieldError]:
    """A ValidatingAdmissionPolicyBinding."""
    spec = document.get("spec") or {}
    found = [] if spec.get("policyName") else [required("spec.policyName")]
    if spec.get("paramRef") is not None:
        found += _reference(spec["paramRef"])
    if spec.get("matchResources") is not None:
        found += _resources(spec["matchResources"], "spec.matchResources")
    actions = spec.get("validationActions") or []
    if not actions:
        found.append(required("spec.validationActions", "at least one validation action is required"))
    for at, action in enumerate(actions):
        if action not in ("Audit", "Deny", "Warn"):
            found.append(unsupported(f"spec.validationActions[{at}]", action, ("Audit", "Deny", "Warn")))
        if action in actions[:at]:
            found.append(duplicate(f"spec.validationActions[{at}]", action))
    if "Deny" in actions and "Warn" in actions:
        why = "repeating the same validation failure information in the API response and headers serves no purpose"
        found.append(invalid("spec.validationActions", actions, f"must not contain both Deny and Warn ({why})"))
    return found


def _reference(reference: Json) -> list[FieldError]:
    found: list[FieldError] = []
    named, selected = bool(reference.get("name")), reference.get("selector") is not None
    if named and selected:
        why = "name and selector are mutually exclusive"
        found += [forbidden_field(f"spec.paramRef.{key}", why) for key in ("name", "selector")]
    elif not named and not selected:
        found.append(required("spec.paramRef", "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction")
    if not action:
        found.append(required("spec.paramRef.parameterNotFoundAction"))
    elif action not in ("Allow", "Deny"):
        found.append(unsupported("spec.paramRef.parameterNotFoundAction", action, ("Deny", "Allow")))
    return found
