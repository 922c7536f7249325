"""Validating admission policies and their bindings."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded import cel
from spinney.embedded.errors import FieldError, forbidden_field, invalid, required, unsupported

_VALUES = ("object", "oldObject", "request", "namespaceObject")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")


def check_policy(document: Json) -> list[FieldError]:
    """A ValidatingAdmissionPolicy."""
    spec = document.get("spec") or {}
    found = [required("spec.matchConstraints")] if spec.get("matchConstraints") is None else []
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        why = "validations or auditAnnotations must contain at least one item"
        found += [required("spec.validations", why), required("spec.auditAnnotations", why)]
    values = (*_VALUES, "params") if spec.get("paramKind") else _VALUES
    for at, condition in enumerate(spec.get("matchConditions") or ()):
        where = f"spec.matchConditions[{at}].expression"
        found += _compiled(condition.get("expression", ""), (*values, "authorizer"), where, "BOOL")
    if spec.get("variables"):
        values = (*values, "variables")
    for at, variable in enumerate(spec.get("variables") or ()):
        where = f"spec.variables[{at}].expression"
        found += _compiled(variable.get("expression", ""), (*values, "authorizer"), where, "")
    for at, rule in enumerate(spec.get("validations") or ()):
        found += _validation(rule, values, f"spec.validations[{at}]")
    return found


def _validation(rule: Json, values: tuple[str, ...], where: str) -> list[FieldError]:
    expression = rule.get("expression", "")
    if not expression.strip():
        return [required(f"{where}.expression", "expression is not specified")]
    found = _compiled(expression, (*values, "authorizer"), f"{where}.expression", "BOOL")
    if rule.get("messageExpression"):
        # What is told may not depend on rights.
        found += _compiled(rule["messageExpression"], values, f"{where}.messageExpression", "STRING")
    if rule.get("reason") and rule["reason"] not in _REASONS:
        found.append(unsupported(f"{where}.reason", rule["reason"], _REASONS))
    return found


def _compiled(text: str, values: tuple[str, ...], where: str, wanted: str) -> list[FieldError]:
    try:
        kind = str(cel.program(text, values).return_type())
    except cel.BadRule as error:
        return [invalid(where, text, f"compilation failed: {error}")]
    # The types of variables are not known here.
    if wanted and kind != wanted and not (kind == "DYN" and "variables." in text):
        return [invalid(where, text, f"must evaluate to {wanted.lower()} but got {kind.lower()}")]
    return []


def check_binding(document: Json) -> list[FieldError]:
    """A ValidatingAdmissionPolicyBinding."""
    spec = document.get("spec") or {}
    found = [] if spec.get("policyName") else [required("spec.policyName")]
    if spec.get("paramRef") is not None:
        found += _reference(spec["paramRef"])
    actions = spec.get("validationActions") or []
    if not actions:
        found.append(required("spec.validationActions", "at least one validation action is required"))
    for at, action in enumerate(actions):
        if action not in ("Audit", "Deny", "Warn"):
            found.append(unsupported(f"spec.validationActions[{at}]", action, ("Audit", "Deny", "Warn")))
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
