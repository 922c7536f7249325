"""ResourceQuotas."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api import naming, quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, too_many
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
_AMOUNTS = frozenset(
    (
        *(f"{side}{name}" for side in ("", "limits.", "requests.") for name in _COMPUTE),
        *("ephemeral-storage", "requests.storage", "requests.ephemeral-storage", "limits.ephemeral-storage"),
    )
)
_STANDARD = _AMOUNTS | _COUNTED
_SCOPES = (
    *("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "PriorityClass", "CrossNamespacePodAffinity"),
    "VolumeAttributesClass",
)
# Usage is counted for each of them whenever something changes in the namespace. Kubernetes has no limit of its own.
_MOST_NAMES = 1000
_HUGE = ("hugepages-", "requests.hugepages-", "limits.hugepages-")


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    hard = spec.get("hard") or {}
    if len(hard) > _MOST_NAMES:
        return [too_many("spec.hard", len(hard), _MOST_NAMES)]
    errors = _amounts(hard, "spec.hard")
    scopes = spec.get("scopes") or []
    errors += [invalid("spec.scopes", scopes, "unsupported scope") for scope in scopes if scope not in _SCOPES]
    for term in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        path, operator = "spec.scopeSelector.matchExpressions", term.get("operator", "")
        if term.get("scopeName") not in _SCOPES:
            errors.append(invalid(f"{path}.scopeName", term.get("scopeName", ""), "unsupported scope"))
        if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    return errors


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
    scopes, old_scopes = ((quota.get("spec") or {}).get("scopes") or [] for quota in (new, old))
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
