"""ResourceQuotas: which resources may be counted, and of which pods."""

from __future__ import annotations

from spinney.api import naming, quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required

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
# What a scope can be told of.
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


def check(document: Json) -> list[FieldError]:
    """A ResourceQuota."""
    spec = document.get("spec") or {}
    found = _amounts(spec.get("hard") or {}, "spec.hard")
    scopes = spec.get("scopes") or []
    for scope in scopes:
        if scope not in _OF_SCOPE:
            found.append(invalid("spec.scopes", scopes, "unsupported scope"))
        found += [
            invalid("spec.scopes", scopes, "unsupported scope applied to resource") for _ in _foreign(spec, scope)
        ]
    found += [invalid("spec.scopes", scopes, "conflicting scopes") for pair in _PAIRS if pair <= set(scopes)]
    if spec.get("scopeSelector") is not None:
        found += _selector(spec, "spec.scopeSelector.matchExpressions")
    return found


def _foreign(spec: Json, scope: str) -> list[str]:
    """Resources that have nothing to do with a scope."""
    allowed = _OF_SCOPE.get(scope)
    if allowed is None:
        return []
    return [name for name in sorted(spec.get("hard") or ()) if name in _STANDARD and name not in allowed]


def _selector(spec: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    terms = spec["scopeSelector"].get("matchExpressions") or ()
    for term in terms:
        scope, operator, values = term.get("scopeName", ""), term.get("operator", ""), term.get("values") or []
        if scope not in _OF_SCOPE:
            found.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        found += [
            invalid(path, _shown(spec["scopeSelector"]), "unsupported scope applied to resource")
            for _ in _foreign(spec, scope)
        ]
        if scope in _OF_SCOPE and scope not in _VALUED and operator != "Exists":
            detail = (
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
                "ResourceQuotaScopeCrossNamespacePodAffinity"
            )
            found.append(invalid(f"{path}.operator", operator, detail))
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                found.append(required(f"{path}.values", detail))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                found.append(invalid(f"{path}.values", values, detail))
        else:
            found.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    named = {term.get("scopeName", "") for term in terms}
    shown = spec.get("scopes")
    return found + [invalid(path, shown, "conflicting scopes") for pair in _PAIRS if pair <= named]


def _shown(selector: Json) -> Json:
    return {
        "MatchExpressions": [
            {"ScopeName": term.get("scopeName", ""), "Operator": term.get("operator", ""), "Values": term.get("values")}
            for term in selector.get("matchExpressions") or ()
        ]
    }


def _amounts(amounts: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for name, text in amounts.items():
        where = f"{path}[{name}]"
        problems = [*naming.qualified_problems(name)]
        if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE):
            if not problems and name != "storage":
                problems.append("must be a standard resource type or fully qualified")
            problems.append("must be a standard resource for quota")
        found += [invalid(where, name, problem) for problem in problems]
        amount = quantity.exact(text)
        if amount < 0:
            found.append(invalid(where, text, "must be greater than or equal to 0"))
        if name in _COUNTED and amount.denominator != 1:
            found.append(invalid(where, text, "must be an integer"))
    return found


def check_update(new: Json, old: Json) -> list[FieldError]:
    """A quota keeps its scopes."""
    mine, was = ((each.get("spec") or {}).get("scopes") or [] for each in (new, old))
    return [] if set(mine) == set(was) else [invalid("spec.scopes", mine or None, "field is immutable")]


def check_status(new: Json, old: Json) -> list[FieldError]:
    """What is said of how much is used."""
    status = new.get("status") or {}
    return _amounts(status.get("hard") or {}, "status.hard") + _amounts(status.get("used") or {}, "status.used")
