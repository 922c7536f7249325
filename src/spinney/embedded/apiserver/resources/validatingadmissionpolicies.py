"""Validating admission policies and their bindings."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, duplicate, forbidden_field, invalid, required, unsupported
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector
from spinney.embedded.apiserver.resources.webhookconfigurations import check_conditions, check_expression, check_rule

_VALUES = ("object", "oldObject", "request", "namespaceObject")
_MATCHES = ("Equivalent", "Exact")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    errors: list[FieldError] = []
    if spec.get("failurePolicy") not in ("Fail", "Ignore"):
        errors.append(unsupported("spec.failurePolicy", spec.get("failurePolicy"), ("Fail", "Ignore")))
    if spec.get("paramKind") is not None:
        errors += _param_kind(spec["paramKind"])
    if spec.get("matchConstraints") is None:
        errors.append(required("spec.matchConstraints"))
    else:
        errors += _resources(spec["matchConstraints"], "spec.matchConstraints")
        if not spec["matchConstraints"].get("resourceRules"):
            errors.append(required("spec.matchConstraints.resourceRules"))
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        why = "validations or auditAnnotations must contain at least one item"
        errors += [required("spec.validations", why), required("spec.auditAnnotations", why)]
    values = (*_VALUES, "params") if spec.get("paramKind") else _VALUES
    conditions = spec.get("matchConditions") or ()
    errors += check_conditions(conditions, (*values, "authorizer"), "spec.matchConditions")
    return errors + _expressions(document["metadata"].get("name", ""), spec, values)


def _expressions(name: str, spec: Json, values: tuple[str, ...]) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.get("variables"):
        values = (*values, "variables")
    defined: list[str] = []
    for at, variable in enumerate(spec.get("variables") or ()):
        where, text = f"spec.variables[{at}]", variable.get("expression", "")
        errors += _variable_name(variable.get("name", ""), f"{where}.name")
        if not text.strip():
            errors.append(required(f"{where}.expression", "expression is not specified"))
        else:
            undefined = _undefined(text, defined, f"{where}.expression")
            errors += undefined or check_expression(text, (*values, "authorizer"), f"{where}.expression")
        defined.append(variable.get("name", ""))
    for at, rule in enumerate(spec.get("validations") or ()):
        undefined = _undefined(rule.get("expression", ""), defined, f"spec.validations[{at}].expression")
        errors += undefined or _validation(rule, values, f"spec.validations[{at}]")
    keys: set[str] = set()
    for at, annotation in enumerate(spec.get("auditAnnotations") or ()):
        errors += _annotation(annotation, (*values, "authorizer"), name, f"spec.auditAnnotations[{at}]")
        if annotation.get("key") in keys:
            errors.append(duplicate(f"spec.auditAnnotations[{at}].key", annotation["key"]))
        keys.add(annotation.get("key", ""))
    return errors


def _param_kind(kind: Json) -> list[FieldError]:
    version, errors = kind.get("apiVersion", ""), list[FieldError]()
    if not version:
        errors.append(required("spec.paramKind.apiVersion"))
    elif version.count("/") > 1:
        errors.append(invalid("spec.paramKind.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    return errors if kind.get("kind") else [*errors, required("spec.paramKind.kind")]


def _resources(resources: Json, where: str) -> list[FieldError]:
    """Check the match rules of a policy or a binding."""
    policy = resources.get("matchPolicy", "Equivalent")
    errors = [] if policy in _MATCHES else [unsupported(f"{where}.matchPolicy", policy, _MATCHES)]
    for key in ("namespaceSelector", "objectSelector"):
        errors += check_selector(resources.get(key), f"{where}.{key}")
    for key in ("resourceRules", "excludeResourceRules"):
        for at, rule in enumerate(resources.get(key) or ()):
            errors += check_rule(rule, f"{where}.{key}[{at}]")
    return errors


def _variable_name(name: str, where: str) -> list[FieldError]:
    if not name.strip():
        return [required(where, "name is not specified")]
    return [] if name.isidentifier() and name.isascii() else [invalid(where, name, "must be a valid CEL identifier")]


def _undefined(text: str, defined: list[str], where: str) -> list[FieldError]:
    """Refuse an expression that uses a variable before its definition."""
    for used in re.finditer(r"\bvariables\.([A-Za-z_]\w*)", text):
        if used[1] not in defined:
            return [invalid(where, text, f"compilation failed: undefined field '{used[1]}' in {used[0]}")]
    return []


def _annotation(annotation: Json, values: tuple[str, ...], policy: str, where: str) -> list[FieldError]:
    key, text = annotation.get("key", ""), annotation.get("valueExpression", "")
    full = f"{policy}/{key}" if policy else key
    errors = [invalid(f"{where}.key", full, problem) for problem in naming.qualified_problems(full)]
    if not text.strip():
        return [*errors, required(f"{where}.valueExpression", "valueExpression is not specified")]
    return errors + check_expression(text, values, f"{where}.valueExpression", "STRING", "NULL")


def _validation(rule: Json, values: tuple[str, ...], where: str) -> list[FieldError]:
    expression = rule.get("expression", "")
    if not expression.strip():
        return [required(f"{where}.expression", "expression is not specified")]
    errors = check_expression(expression, (*values, "authorizer"), f"{where}.expression", "BOOL")
    if rule.get("messageExpression"):
        # A message may not depend on the user's rights.
        errors += check_expression(rule["messageExpression"], values, f"{where}.messageExpression", "STRING")
    if "\n" in rule.get("message", "").strip():
        errors.append(invalid(f"{where}.message", rule["message"], "must not contain line breaks"))
    if rule.get("reason") and rule["reason"] not in _REASONS:
        errors.append(unsupported(f"{where}.reason", rule["reason"], _REASONS))
    return errors


def _check_binding(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    errors = [] if spec.get("policyName") else [required("spec.policyName")]
    if spec.get("paramRef") is not None:
        errors += _reference(spec["paramRef"])
    if spec.get("matchResources") is not None:
        errors += _resources(spec["matchResources"], "spec.matchResources")
    actions = spec.get("validationActions") or []
    if not actions:
        errors.append(required("spec.validationActions", "at least one validation action is required"))
    for at, action in enumerate(actions):
        if action not in ("Audit", "Deny", "Warn"):
            errors.append(unsupported(f"spec.validationActions[{at}]", action, ("Audit", "Deny", "Warn")))
        if action in actions[:at]:
            errors.append(duplicate(f"spec.validationActions[{at}]", action))
    if "Deny" in actions and "Warn" in actions:
        why = "repeating the same validation failure information in the API response and headers serves no purpose"
        errors.append(invalid("spec.validationActions", actions, f"must not contain both Deny and Warn ({why})"))
    return errors


def _reference(reference: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    named, selected = bool(reference.get("name")), reference.get("selector") is not None
    if named and selected:
        why = "name and selector are mutually exclusive"
        errors += [forbidden_field(f"spec.paramRef.{key}", why) for key in ("name", "selector")]
    elif not named and not selected:
        errors.append(required("spec.paramRef", "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction")
    if not action:
        errors.append(required("spec.paramRef.parameterNotFoundAction"))
    elif action not in ("Allow", "Deny"):
        errors.append(unsupported("spec.paramRef.parameterNotFoundAction", action, ("Deny", "Allow")))
    return errors


def _default(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    if spec.get("matchConstraints") is not None:
        _default_match(spec["matchConstraints"])


def _default_binding(document: Json) -> None:
    spec = document.setdefault("spec", {})
    if spec.get("matchResources") is not None:
        _default_match(spec["matchResources"])


def _default_match(match: Json) -> None:
    fill(match, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    for rule in match.get("resourceRules") or ():
        rule.setdefault("scope", "*")


def _cells(document: Json, now: datetime) -> list[Any]:
    spec = cells.spec(document)
    kind = spec.get("paramKind")
    parameters = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else "<unset>"
    return [cells.name(document), len(spec.get("validations") or ()), parameters, cells.age(document, now)]


def _binding_cells(document: Json, now: datetime) -> list[Any]:
    spec = cells.spec(document)
    reference = spec.get("paramRef")
    parameters = "<unset>"
    if reference and reference.get("name"):
        parameters = f"{reference.get('namespace') or '*'}/{reference['name']}"
    elif reference:
        parameters = selectors.formatted(reference.get("selector") or {})
    return [cells.name(document), spec.get("policyName", ""), parameters, cells.age(document, now)]


VALIDATING_ADMISSION_POLICIES = Resource(
    group="admissionregistration.k8s.io",
    kind="ValidatingAdmissionPolicy",
    plural="validatingadmissionpolicies",
    namespaced=False,
    categories=("api-extensions",),
    subresources=("status",),
    default=_default,
    has_generation=True,
    allow_unconditional_update=False,
    checks=Checks(qualified_finalizers=False, object=_check),
    table=Table("Name,#Validations,ParamKind,Age", _cells),
)
VALIDATING_ADMISSION_POLICY_BINDINGS = Resource(
    group="admissionregistration.k8s.io",
    kind="ValidatingAdmissionPolicyBinding",
    plural="validatingadmissionpolicybindings",
    namespaced=False,
    categories=("api-extensions",),
    default=_default_binding,
    has_generation=True,
    allow_unconditional_update=False,
    checks=Checks(qualified_finalizers=False, object=_check_binding),
    table=Table("Name,PolicyName,ParamRef,Age", _binding_cells),
)
