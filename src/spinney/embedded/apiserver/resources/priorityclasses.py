"""PriorityClasses."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from spinney.api.meta import Json
from spinney.api.scheduling import PriorityClass
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import FieldError, forbidden, forbidden_field, unsupported
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Table
from spinney.embedded.apiserver.resources.validation.names import check_unchanged

# The classes that every cluster has.
SYSTEM = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
_decode = msgspec.json.Decoder(PriorityClass).decode


def _default(document: Json) -> None:
    fill(document, preemptionPolicy="PreemptLowerPriority", value=0)


def _prepare_create(core: Core, call: Call, document: Json) -> None:
    if not document.get("globalDefault"):
        return
    default = global_default(core)
    if default is not None:
        why = f"PriorityClass {default.name} is already marked as default. Only one default can exist"
        raise forbidden(call.kind, document["metadata"].get("name", ""), why)


def global_default(core: Core) -> PriorityClass | None:
    """The class of pods that name none."""
    classes = (_decode(item.body) for item in core.store.table("scheduling.k8s.io/priorityclasses").range(""))
    return next((priority_class for priority_class in classes if priority_class.global_default), None)


def _check(document: Json) -> list[FieldError]:
    name, value = document["metadata"].get("name", ""), document.get("value", 0)
    if name.startswith("system-"):
        if SYSTEM.get(name) != value:
            detail = "priority class names with 'system-' prefix are reserved for system use only. error: "
            detail += f"{name} is not a known system priority class" if name not in SYSTEM else "value mismatch"
            return [forbidden_field("metadata.name", detail)]
        return []
    if value > 1_000_000_000:
        detail = "maximum allowed value of a user defined priority is 1000000000"
        return [forbidden_field("value", detail)]
    policy = document.get("preemptionPolicy", "PreemptLowerPriority")
    if policy not in ("Never", "PreemptLowerPriority"):
        return [unsupported("preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))]
    return []


def _check_update(new: Json, old: Json) -> list[FieldError]:
    """Check an update of a PriorityClass."""
    errors: list[FieldError] = []
    if new.get("value", 0) != old.get("value", 0):
        errors.append(forbidden_field("value", "may not be changed in an update."))
    return errors + check_unchanged(new, old, ["preemptionPolicy"])


def _cells(document: Json, now: datetime) -> list[Any]:
    flag = bool(document.get("globalDefault"))
    return [
        cells.name(document),
        document.get("value", 0),
        flag,
        cells.age(document, now),
        document.get("preemptionPolicy", ""),
    ]


def _deletion_refusal(name: str) -> str:
    return "this is a system priority class and cannot be deleted" if name.startswith("system-") else ""


PRIORITY_CLASSES = Resource(
    group="scheduling.k8s.io",
    kind="PriorityClass",
    plural="priorityclasses",
    namespaced=False,
    short_names=("pc",),
    default=_default,
    prepare_create=_prepare_create,
    has_generation=True,
    generation_changes=False,
    deletion=Deletion(refusal=_deletion_refusal),
    checks=Checks(object=_check, update=_check_update),
    table=Table("Name,#Value,?Global-Default,Age,PreemptionPolicy", _cells),
)
