"""Leases."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table


def _default(document: Json) -> None:
    spec = document.setdefault("spec", {})
    for key in ("strategy", "preferredHolder"):
        spec.pop(key, None)


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    errors: list[FieldError] = []
    if spec.get("leaseDurationSeconds") is not None and spec["leaseDurationSeconds"] <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0"))
    if spec.get("leaseTransitions") is not None and spec["leaseTransitions"] < 0:
        errors.append(invalid("spec.leaseTransitions", spec["leaseTransitions"], "must be greater than or equal to 0"))
    return errors


def _cells(document: Json, now: datetime) -> list[Any]:
    return [cells.name(document), cells.spec(document).get("holderIdentity", ""), cells.age(document, now)]


LEASES = Resource(
    group="coordination.k8s.io",
    kind="Lease",
    plural="leases",
    default=_default,
    allow_unconditional_update=False,
    allow_create_on_update=True,
    checks=Checks(qualified_finalizers=False, object=_check),
    table=Table("Name,Holder,Age", _cells),
)
