"""Validating admission policies and their bindings."""

from __future__ import annotations

import re

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, one_of, required, unsupported
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector
from spinney.embedded.apiserver.resources.webhookconfigurations import check_conditions, check_expression, check_rule

_ACTIONS = ("Audit", "Deny", "Warn")
_VALUES = ("object", "oldObject", "request", "namespaceObject")


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    match, errors = spec.get("matchConstraints") or {}, list[FieldError]()
    errors += one_of("spec.failurePolicy", spec.get("failurePolicy"), ("Fail", "Ignore"))
    if not match.get("resourceRules"):
        errors.append(required("spec.matchConstraints.resourceRules"))
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        why = "validations or auditAnnotations must contain at least one item"
        errors += [required("spec.validations", why), required("spec.auditAnnotations", why)]
    errors += _check_match(match, "spec.matchConstraints")
    values = (*_VALUES, "params") if spec.get("paramKind") else _VALUES
    errors += check_conditions(spec.get("matchConditions") or (), (*values, "authorizer"), "spec.matchConditions")
    return errors + _expressions(spec, values)


def _check_match(match: Json, where: str) -> list[FieldError]:
    errors = check_selector(match.get("namespaceSelector"), f"{where}.namespaceSelector")
    errors += check_selector(match.get("objectSelector"), f"{where}.objectSelector")
    for key in ("resourceRules", "excludeResourceRules"):
        for at, rule in enumerate(match.get(key) or ()):
            errors += check_rule(rule, f"{where}.{key}[{at}]")
    return errors


def _expressions(spec: Json, values: tuple[str, ...]) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.get("variables"):
        values = (*values, "variables")
    all_values, defined = (*values, "authorizer"), list[str]()
    for at, variable in enumerate(spec.get("variables") or ()):
        where, text = f"spec.variables[{at}].expression", variable.get("expression", "")
        errors += [] if variable.get("name") else [required(f"spec.variables[{at}].name")]
        errors += _undefined(text, defined, where) or check_expression(text, all_values, where)
        defined.append(variable.get("name", ""))
    for at, rule in enumerate(spec.get("validations") or ()):
        where, text = f"spec.validations[{at}].expression", rule.get("expression", "")
        errors += _undefined(text, defined, where) or check_expression(text, all_values, where, "BOOL")
        if rule.get("messageExpression"):
            # A message may not depend on the user's rights.
            where = f"spec.validations[{at}].messageExpression"
            errors += check_expression(rule["messageExpression"], values, where, "STRING")
    for at, annotation in enumerate(spec.get("auditAnnotations") or ()):
        where, text = f"spec.auditAnnotations[{at}].valueExpression", annotation.get("valueExpression", "")
        errors += check_expression(text, all_values, where, "STRING", "NULL")
    return errors


def _undefined(text: str, defined: list[str], where: str) -> list[FieldError]:
    """Refuse an expression that uses a variable before its definition."""
    for used in re.finditer(r"\bvariables\.([A-Za-z_]\w*)", text):
        if used[1] not in defined:
            return [invalid(where, text, f"compilation failed: undefined field '{used[1]}' in {used[0]}")]
    return []


def _check_binding(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    errors = [] if spec.get("policyName") else [required("spec.policyName")]
    if not spec.get("validationActions"):
        errors.append(required("spec.validationActions", "at least one validation action is required"))
    errors += [
        unsupported(f"spec.validationActions[{at}]", action, _ACTIONS)
        for at, action in enumerate(spec.get("validationActions") or ())
        if action not in _ACTIONS
    ]
    return errors + _check_match(spec.get("matchResources") or {}, "spec.matchResources")


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


VALIDATING_ADMISSION_POLICIES = Resource(
    group="admissionregistration.k8s.io",
    kind="ValidatingAdmissionPolicy",
    plural="validatingadmissionpolicies",
    namespaced=False,
    categories=("api-extensions",),
    subresources=("status",),
    status_keeps=None,
    default=_default,
    has_generation=True,
    allow_unconditional_update=False,
    checks=Checks(qualified_finalizers=False, object=_check),
    table=Table("Name,Failure Policy,Age", cells.members("spec.failurePolicy")),
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
    table=Table("Name,PolicyName,Age", cells.members("spec.policyName")),
)
