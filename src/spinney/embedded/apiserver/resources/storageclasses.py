"""StorageClasses."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, one_of, required
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Table
from spinney.embedded.apiserver.resources.validation.names import check_unchanged


def _default(document: Json) -> None:
    fill(document, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _check(document: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    name = document.get("provisioner", "")
    if not name:
        errors.append(required("provisioner"))
    else:
        errors += [invalid("provisioner", name, problem) for problem in naming.qualified_problems(name.lower())]
    policy = document.get("reclaimPolicy", "Delete")
    errors += one_of("reclaimPolicy", policy, ("Delete", "Retain"))
    mode = document.get("volumeBindingMode", "Immediate")
    errors += one_of("volumeBindingMode", mode, ("Immediate", "WaitForFirstConsumer"))
    return errors


def _check_update(new: Json, old: Json) -> list[FieldError]:
    """Check an update of a StorageClass."""
    errors = [
        forbidden_field(key, f"updates to {key} are forbidden.")
        for key in ("parameters", "provisioner", "reclaimPolicy")
        if new.get(key) != old.get(key)
    ]
    return errors + check_unchanged(new, old, ["volumeBindingMode"])


def _cells(document: Json, now: datetime) -> list[Any]:
    annotations = document["metadata"].get("annotations") or {}
    marks = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
    default = any(annotations.get(mark) == "true" for mark in marks)
    return [
        cells.name(document) + (" (default)" if default else ""),
        document.get("provisioner", ""),
        document.get("reclaimPolicy", "Delete"),
        document.get("volumeBindingMode", "Immediate"),
        bool(document.get("allowVolumeExpansion")),
        cells.age(document, now),
    ]


STORAGE_CLASSES = Resource(
    group="storage.k8s.io",
    kind="StorageClass",
    plural="storageclasses",
    namespaced=False,
    short_names=("sc",),
    default=_default,
    deletion=Deletion(returns_object=True),
    checks=Checks(object=_check, update=_check_update),
    table=Table("Name,Provisioner,ReclaimPolicy,VolumeBindingMode,AllowVolumeExpansion,Age", _cells),
)
