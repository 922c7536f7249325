"""PodDisruptionBudgets."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, unsupported
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.defaults import only_spec
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector
from spinney.embedded.apiserver.resources.validation.rollouts import check_at_most_all, check_share

_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    errors: list[FieldError] = []
    if least is not None and most is not None:
        errors.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    for key in ("minAvailable", "maxUnavailable"):
        errors += check_share(spec, key, "spec") + check_at_most_all(spec, key, "spec")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION_POLICIES:
        errors.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES))
    return errors + check_selector(spec.get("selector"), "spec.selector")


def _cells(document: Json, now: datetime) -> list[Any]:
    spec, status = cells.spec(document), cells.status(document)
    least, most = spec.get("minAvailable", "N/A"), spec.get("maxUnavailable", "N/A")
    return [cells.name(document), str(least), str(most), status.get("disruptionsAllowed", 0), cells.age(document, now)]


POD_DISRUPTION_BUDGETS = Resource(
    group="policy",
    kind="PodDisruptionBudget",
    plural="poddisruptionbudgets",
    short_names=("pdb",),
    subresources=("status",),
    default=only_spec,
    complete=complete.status_members(dict.fromkeys(_COUNTS, 0), times=("lastTransitionTime",)),
    has_generation=True,
    allow_unconditional_update=False,
    checks=Checks(qualified_finalizers=False, name=naming.path_problems, object=_check),
    table=Table("Name,Min Available,Max Unavailable,#Allowed Disruptions,Age", _cells),
)
