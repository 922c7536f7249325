"""Webhook configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.cel.expressions import CompileError, compile_expression
from spinney.embedded.apiserver.errors import FieldError, invalid, one_of, required
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector


def _check(document: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    for at, hook in enumerate(document.get("webhooks") or ()):
        errors += _hook(hook, f"webhooks[{at}]")
    return errors


def _hook(hook: Json, where: str) -> list[FieldError]:
    """Check what a webhook cannot be called without."""
    name, config = hook.get("name", ""), hook.get("clientConfig") or {}
    errors = [invalid(f"{where}.name", name, problem) for problem in naming.subdomain_problems(name)]
    if not errors and name.count(".") < 2:
        detail = "should be a domain with at least three segments separated by dots"
        errors.append(invalid(f"{where}.name", name, detail))
    errors += one_of(f"{where}.failurePolicy", hook.get("failurePolicy"), ("Fail", "Ignore"))
    if hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
        errors.append(required(f"{where}.sideEffects", "must specify one of None, NoneOnDryRun"))
    if not 1 <= hook.get("timeoutSeconds", 10) <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(f"{where}.timeoutSeconds", hook["timeoutSeconds"], detail))
    if bool(config.get("url")) == bool(config.get("service")):
        errors.append(required(f"{where}.clientConfig", "exactly one of url or service is required"))
    service = config.get("service") or {"name": "-", "namespace": "-"}
    errors += [required(f"{where}.clientConfig.service.{key}") for key in ("name", "namespace") if not service.get(key)]
    if not set(hook.get("admissionReviewVersions") or ()) & {"v1", "v1beta1"}:
        errors.append(required(f"{where}.admissionReviewVersions", "must specify one of v1, v1beta1"))
    for at, rule in enumerate(hook.get("rules") or ()):
        errors += check_rule(rule, f"{where}.rules[{at}]")
    errors += check_selector(hook.get("namespaceSelector"), f"{where}.namespaceSelector")
    errors += check_selector(hook.get("objectSelector"), f"{where}.objectSelector")
    values = ("object", "oldObject", "request", "authorizer")
    return errors + check_conditions(hook.get("matchConditions") or (), values, f"{where}.matchConditions")


def check_rule(rule: Json, path: str) -> list[FieldError]:
    """Check that a rule of a webhook or a policy matches something."""
    keys = ("operations", "apiGroups", "apiVersions", "resources")
    return [required(f"{path}.{key}") for key in keys if not rule.get(key)]


def check_conditions(conditions: Sequence[Json], values: tuple[str, ...], where: str) -> list[FieldError]:
    """Check the match conditions of a webhook or a policy."""
    errors: list[FieldError] = []
    for at, condition in enumerate(conditions):
        errors += [] if condition.get("name") else [required(f"{where}[{at}].name")]
        errors += check_expression(condition.get("expression", ""), values, f"{where}[{at}].expression", "BOOL")
    return errors


def check_expression(text: str, values: tuple[str, ...], where: str, *wanted: str) -> list[FieldError]:
    """Check that an expression compiles over some variables, to one of some types."""
    if not text.strip():
        return [required(where)]
    try:
        kind = compile_expression(text, values).result_type
    except CompileError as error:
        return [invalid(where, text, f"compilation failed: {error}")]
    # The types of variables are not known here.
    if not wanted or kind in wanted or (kind == "DYN" and "variables." in text):
        return []
    listed = [name.lower().replace("null", "null_type") for name in wanted]
    types = listed[0] if len(listed) == 1 else f"one of [{' '.join(listed)}]"
    return [invalid(where, text, f"must evaluate to {types} but got {kind.lower()}")]


def _default(document: Json) -> None:
    mutating = document.get("kind") == "MutatingWebhookConfiguration"
    for hook in document.get("webhooks") or ():
        fill(
            hook,
            failurePolicy="Fail",
            matchPolicy="Equivalent",
            namespaceSelector={},
            objectSelector={},
            timeoutSeconds=10,
        )
        if mutating:
            hook.setdefault("reinvocationPolicy", "Never")
        for rule in hook.get("rules") or ():
            rule.setdefault("scope", "*")
        service = (hook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)


def _cells(document: Json, now: datetime) -> list[Any]:
    return [cells.name(document), len(document.get("webhooks") or ()), cells.age(document, now)]


VALIDATING_WEBHOOK_CONFIGURATIONS = Resource(
    group="admissionregistration.k8s.io",
    kind="ValidatingWebhookConfiguration",
    plural="validatingwebhookconfigurations",
    namespaced=False,
    categories=("api-extensions",),
    default=_default,
    has_generation=True,
    allow_unconditional_update=False,
    checks=Checks(qualified_finalizers=False, object=_check),
    table=Table("Name,#Webhooks,Age", _cells),
)
MUTATING_WEBHOOK_CONFIGURATIONS = replace(
    VALIDATING_WEBHOOK_CONFIGURATIONS, kind="MutatingWebhookConfiguration", plural="mutatingwebhookconfigurations"
)
