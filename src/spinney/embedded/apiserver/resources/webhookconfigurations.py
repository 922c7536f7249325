"""Webhook configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from spinney.api import naming
from spinney.api.meta import Json
from spinney.cel.expressions import CompileError, compile_expression
from spinney.embedded.apiserver.errors import FieldError, duplicate, invalid, required, unsupported
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")


def _check(document: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for at, hook in enumerate(document.get("webhooks") or ()):
        where = f"webhooks[{at}]"
        name = hook.get("name", "")
        if naming.subdomain_problems(name):
            errors += [invalid(f"{where}.name", name, problem) for problem in naming.subdomain_problems(name)]
        elif name.count(".") < 2:
            detail = "should be a domain with at least three segments separated by dots"
            errors.append(invalid(f"{where}.name", name, detail))
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        errors += _hook(hook, where)
    return errors


def _url(text: str, where: str) -> list[FieldError]:
    url, errors = urlsplit(text), list[FieldError]()
    form = "; desired format: https://host[/path]"
    if url.scheme != "https":
        errors.append(invalid(where, url.scheme or text, f"'https' is the only allowed URL scheme{form}"))
    if not url.hostname:
        errors.append(invalid(where, url.hostname or "", f"host must be specified{form}"))
    user = url.netloc.rpartition("@")[0]
    unwanted = {"user information is": user, "fragments are": url.fragment, "query parameters are": url.query}
    errors += [invalid(where, value, f"{what} not permitted in the URL") for what, value in unwanted.items() if value]
    return errors


def _service(service: Json, where: str) -> list[FieldError]:
    errors = [required(f"{where}.{key}") for key in ("name", "namespace") if not service.get(key)]
    port, path = service.get("port", 443), service.get("path")
    if not 1 <= port <= 65535:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        errors.append(invalid(f"{where}.port", port, detail))
    if path is not None and not path.startswith("/"):
        errors.append(invalid(f"{where}.path", path, "must start with a '/'"))
    segments = (path or "/").lstrip("/").split("/") if path not in (None, "/") else []
    if path is not None and not path.startswith("/"):
        errors.append(invalid(f"{where}.path", path, "segment[0] may not be empty"))
        segments = []
    for at, segment in enumerate(segments):
        if not segment:
            errors.append(invalid(f"{where}.path", path, f"segment[{at}] may not be empty"))
    return errors


def check_rule(rule: Json, path: str) -> list[FieldError]:
    """Check a rule of a webhook or a policy."""
    errors: list[FieldError] = []
    for at, name in enumerate(rule.get("resourceNames") or ()):
        where = f"{path}.resourceNames[{at}]"
        errors += [invalid(where, name, problem) for problem in naming.path_problems(name)]
        if name in rule["resourceNames"][:at]:
            errors.append(duplicate(where, name))
    for key, others in (("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")):
        given = rule.get(key) or []
        if not given:
            errors.append(required(f"{path}.{key}"))
        if "*" in given and len(given) > 1:
            detail = f"if '*' is present, must not specify other {others}"
            errors.append(invalid(f"{path}.{key}", given, detail))
        if key == "operations":
            errors += [
                unsupported(f"{path}.{key}[{at}]", name, _OPERATIONS)
                for at, name in enumerate(given)
                if name not in _OPERATIONS
            ]
    resources = rule.get("resources") or []
    if not resources:
        errors.append(required(f"{path}.resources"))
    if "*/*" in resources and len(resources) > 1:
        detail = "if '*/*' is present, must not specify other resources"
        errors.append(invalid(f"{path}.resources", resources, detail))
    if "*" in resources and any("/" not in name for name in resources if name != "*"):
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(f"{path}.resources", resources, detail))
    scope = rule.get("scope", "*")
    if scope not in _SCOPES:
        errors.append(unsupported(f"{path}.scope", scope, _SCOPES))
    return errors


def _hook(hook: Json, where: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if hook.get("failurePolicy") not in ("Fail", "Ignore"):
        errors.append(unsupported(f"{where}.failurePolicy", hook.get("failurePolicy"), ("Fail", "Ignore")))
    if hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
        given = hook.get("sideEffects")
        field = f"{where}.sideEffects"
        allowed = ("None", "NoneOnDryRun")
        errors.append(
            unsupported(field, given, allowed) if given else required(field, "must specify one of None, NoneOnDryRun")
        )
    match = hook.get("matchPolicy", "Equivalent")
    if match not in ("Equivalent", "Exact"):
        errors.append(unsupported(f"{where}.matchPolicy", match, ("Equivalent", "Exact")))
    again = hook.get("reinvocationPolicy", "Never")
    if again not in ("IfNeeded", "Never"):
        errors.append(unsupported(f"{where}.reinvocationPolicy", again, ("IfNeeded", "Never")))
    for at, rule in enumerate(hook.get("rules") or ()):
        errors += check_rule(rule, f"{where}.rules[{at}]")
    timeout = hook.get("timeoutSeconds", 10)
    if not 1 <= timeout <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(f"{where}.timeoutSeconds", timeout, detail))
    errors += check_selector(hook.get("namespaceSelector"), f"{where}.namespaceSelector")
    errors += check_selector(hook.get("objectSelector"), f"{where}.objectSelector")
    config = hook.get("clientConfig") or {}
    if bool(config.get("url")) == bool(config.get("service")):
        detail = "exactly one of url or service is required"
        errors.append(required(f"{where}.clientConfig", detail))
    elif config.get("url"):
        errors += _url(config["url"], f"{where}.clientConfig.url")
    else:
        errors += _service(config["service"], f"{where}.clientConfig.service")
    if not hook.get("admissionReviewVersions"):
        detail = "must specify one of v1, v1beta1"
        errors.append(required(f"{where}.admissionReviewVersions", detail))
    elif not set(hook["admissionReviewVersions"]) & {"v1", "v1beta1"}:
        detail = "must include at least one of v1, v1beta1"
        errors.append(invalid(f"{where}.admissionReviewVersions", hook["admissionReviewVersions"], detail))
    values = ("object", "oldObject", "request", "authorizer")
    return errors + check_conditions(hook.get("matchConditions") or (), values, f"{where}.matchConditions")


def check_conditions(conditions: Sequence[Json], values: tuple[str, ...], where: str) -> list[FieldError]:
    """Check the match conditions of a webhook or a policy."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for at, condition in enumerate(conditions):
        field, name = f"{where}[{at}]", condition.get("name", "")
        if condition.get("expression", "").strip():
            errors += check_expression(condition["expression"], values, f"{field}.expression", "BOOL")
        else:
            errors.append(required(f"{field}.expression"))
        if not name:
            errors.append(required(f"{field}.name"))
        else:
            errors += [invalid(f"{field}.name", name, problem) for problem in naming.qualified_problems(name)]
        if name and name in seen:
            errors.append(duplicate(f"{field}.name", name))
        seen.add(name)
    return errors


def check_expression(text: str, values: tuple[str, ...], where: str, *wanted: str) -> list[FieldError]:
    """Check that an expression compiles over some variables, to one of some types."""
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
