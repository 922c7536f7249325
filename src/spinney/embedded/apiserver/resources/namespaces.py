"""Namespaces."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import FieldError, invalid
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.deletion_marks import mark_deleted
from spinney.embedded.apiserver.resources.record import ALL_VERBS, Checks, Deletion, Resource, Table

_FINALIZER_RULE = "name is neither a standard finalizer name nor is it fully qualified"


def _default(document: Json) -> None:
    """Set the label that holds the name of the namespace."""
    metadata = document["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    document.setdefault("spec", {})
    document.setdefault("status", {}).setdefault("phase", "Active")


def _prepare_create(core: Core, call: Call, document: Json) -> None:
    document["status"] = {"phase": "Active"}
    spec = document["spec"]
    if "kubernetes" not in spec.get("finalizers", ()):
        spec["finalizers"] = [*(spec.get("finalizers") or ()), "kubernetes"]


def _prepare_update(core: Core, call: Call, new: Json, old: Json) -> None:
    new["spec"] = old.get("spec") or {}
    _default(new)


def _finalize(new: Json, old: Json) -> Json:
    return {**old, "spec": new.get("spec") or {}, "metadata": dict(old["metadata"])}


def _check(document: Json) -> list[FieldError]:
    return [invalid("spec.finalizers", name, _FINALIZER_RULE) for _, name in _unqualified_finalizers(document)]


def _check_finalize(new: Json, old: Json) -> list[FieldError]:
    return [invalid(f"spec.finalizers[{at}]", name, _FINALIZER_RULE) for at, name in _unqualified_finalizers(new)]


def _unqualified_finalizers(document: Json) -> list[tuple[int, str]]:
    finalizers = enumerate((document.get("spec") or {}).get("finalizers") or ())
    return [(at, name) for at, name in finalizers if "/" not in name and name != "kubernetes"]


def _check_status(new: Json, old: Json) -> list[FieldError]:
    """Check the phase: Active until the namespace is deleted, Terminating after that."""
    phase = (new.get("status") or {}).get("phase")
    wanted, when = "Active", "empty"
    if old["metadata"].get("deletionTimestamp"):
        wanted, when = "Terminating", "not empty"
    if phase == wanted:
        return []
    return [invalid("status.Phase", phase, f"may only be '{wanted}' if `deletionTimestamp` is {when}")]


def _cells(document: Json, now: datetime) -> list[Any]:
    return [cells.name(document), cells.status(document).get("phase", ""), cells.age(document, now)]


def _deletion_refusal(name: str) -> str:
    return "this namespace may not be deleted" if name in ("default", "kube-system", "kube-public") else ""


def _begin_deletion(core: Core, document: Json, finalizers: list[str], options: Json) -> bool:
    """Mark a namespace, which waits for its finalizers and for those of its content."""
    metadata = document["metadata"]
    waits = bool(finalizers) or bool((document.get("spec") or {}).get("finalizers"))
    if waits and not metadata.get("deletionTimestamp"):
        mark_deleted(core, metadata, 0)
    metadata.pop("deletionGracePeriodSeconds", None)
    document["status"] = {**(document.get("status") or {}), "phase": "Terminating"}
    return waits


NAMESPACES = Resource(
    kind="Namespace",
    plural="namespaces",
    namespaced=False,
    short_names=("ns",),
    subresources=("finalize", "status"),
    verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
    default=_default,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    prepare_subresources={"finalize": _finalize},
    deletion=Deletion(refusal=_deletion_refusal, begin=_begin_deletion, returns_object=True),
    checks=Checks(
        name=naming.label_problems,
        object=_check,
        subresources={"finalize": _check_finalize, "status": _check_status},
    ),
    table=Table("Name,Status,Age", _cells),
    selectable=("status.phase",),
)
