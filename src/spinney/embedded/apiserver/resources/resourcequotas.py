"""ResourceQuotas."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api import naming, quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.defaults import only_spec
from spinney.embedded.apiserver.resources.quota import Quota
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Table

_COMPUTE = ("cpu", "memory")
_COUNTED = frozenset(
    (
        *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "persistentvolumeclaims"),
        *("configmaps", "services.nodeports", "services.loadbalancers"),
    )
)
_POD_AMOUNTS = frozenset(
    (*_COMPUTE, *(f"{side}.{name}" for side in ("limits", "requests") for name in _COMPUTE), "pods")
)
_AMOUNTS = frozenset(
    (
        *(_POD_AMOUNTS - {"pods"}),
        *("ephemeral-storage", "requests.storage", "requests.ephemeral-storage", "limits.ephemeral-storage"),
    )
)
_STANDARD = _AMOUNTS | _COUNTED
# The resources that each scope applies to.
_OF_SCOPE = {
    "BestEffort": frozenset(("pods",)),
    **dict.fromkeys(
        ("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"), _POD_AMOUNTS
    ),
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
_PAIRS = (frozenset(("BestEffort", "NotBestEffort")), frozenset(("Terminating", "NotTerminating")))
_VALUED = ("PriorityClass", "VolumeAttributesClass")
_HUGE = ("hugepages-", "requests.hugepages-", "limits.hugepages-")


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    errors = _amounts(spec.get("hard") or {}, "spec.hard")
    scopes = spec.get("scopes") or []
    for scope in scopes:
        if scope not in _OF_SCOPE:
            errors.append(invalid("spec.scopes", scopes, "unsupported scope"))
        errors += [
            invalid("spec.scopes", scopes, "unsupported scope applied to resource") for _ in _foreign(spec, scope)
        ]
    errors += [invalid("spec.scopes", scopes, "conflicting scopes") for pair in _PAIRS if pair <= set(scopes)]
    if spec.get("scopeSelector") is not None:
        errors += _selector(spec, "spec.scopeSelector.matchExpressions")
    return errors


def _foreign(spec: Json, scope: str) -> list[str]:
    """Limited resources that a scope does not apply to."""
    allowed = _OF_SCOPE.get(scope)
    if allowed is None:
        return []
    return [name for name in sorted(spec.get("hard") or ()) if name in _STANDARD and name not in allowed]


def _selector(spec: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    terms = spec["scopeSelector"].get("matchExpressions") or ()
    for term in terms:
        scope, operator, values = term.get("scopeName", ""), term.get("operator", ""), term.get("values") or []
        if scope not in _OF_SCOPE:
            errors.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        errors += [
            invalid(path, spec["scopeSelector"], "unsupported scope applied to resource") for _ in _foreign(spec, scope)
        ]
        if scope in _OF_SCOPE and scope not in _VALUED and operator != "Exists":
            detail = (
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
                "ResourceQuotaScopeCrossNamespacePodAffinity"
            )
            errors.append(invalid(f"{path}.operator", operator, detail))
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                errors.append(required(f"{path}.values", detail))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                errors.append(invalid(f"{path}.values", values, detail))
        else:
            errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    named = {term.get("scopeName", "") for term in terms}
    shown = spec.get("scopes")
    return errors + [invalid(path, shown, "conflicting scopes") for pair in _PAIRS if pair <= named]


def _amounts(amounts: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, text in amounts.items():
        where = f"{path}[{name}]"
        problems = [*naming.qualified_problems(name)]
        if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE):
            if not problems and name != "storage":
                problems.append("must be a standard resource type or fully qualified")
            problems.append("must be a standard resource for quota")
        errors += [invalid(where, name, problem) for problem in problems]
        amount = quantity.exact(text)
        if amount < 0:
            errors.append(invalid(where, text, "must be greater than or equal to 0"))
        if name in _COUNTED and amount.denominator != 1:
            errors.append(invalid(where, text, "must be an integer"))
    return errors


def _check_update(new: Json, old: Json) -> list[FieldError]:
    scopes, old_scopes = ((each.get("spec") or {}).get("scopes") or [] for each in (new, old))
    return [] if set(scopes) == set(old_scopes) else [invalid("spec.scopes", scopes or None, "field is immutable")]


def _cells(document: Json, now: datetime) -> list[Any]:
    status = cells.status(document)
    hard, used = status.get("hard") or {}, status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        (limits if name.startswith("limits") else requests).append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [cells.name(document), ", ".join(requests), ", ".join(limits), cells.age(document, now)]


RESOURCE_QUOTAS = Resource(
    kind="ResourceQuota",
    plural="resourcequotas",
    short_names=("quota",),
    subresources=("status",),
    default=only_spec,
    deletion=Deletion(returns_object=True),
    quota=Quota(counted=True),
    checks=Checks(object=_check, update=_check_update),
    table=Table("Name,Request,Limit,Age", _cells),
)
