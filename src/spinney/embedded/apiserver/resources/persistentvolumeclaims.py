"""PersistentVolumeClaims."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import Any

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.admission import limit_ranges
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import FieldError, forbidden_field
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.defaults import add_finalizer
from spinney.embedded.apiserver.resources.persistentvolumes import access_modes, class_name
from spinney.embedded.apiserver.resources.quota import Quota, Scope, Usage, amounts
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Table
from spinney.embedded.apiserver.resources.validation.claim_specs import check_claim_spec
from spinney.embedded.apiserver.resources.validation.names import changed_fields, check_unchanged, with_old
from spinney.embedded.apiserver.store.store import load

_BY_CLASS = "storageclass.storage.k8s.io"


def _default(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    source = spec.get("dataSource")
    if source is not None and not source.get("apiGroup") and source.get("kind") not in (None, "PersistentVolumeClaim"):
        del spec["dataSource"]
    # Both fields name the same source.
    if spec.get("dataSource") is not None:
        spec.setdefault("dataSourceRef", dict(spec["dataSource"]))
    elif spec.get("dataSourceRef") is not None and not spec["dataSourceRef"].get("namespace"):
        spec["dataSource"] = dict(spec["dataSourceRef"])
    document.setdefault("status", {}).setdefault("phase", "Pending")


def _prepare_create(core: Core, call: Call, document: Json) -> None:
    limit_ranges.admit_claim(core, call, document)
    document["status"] = {"phase": "Pending"}
    spec = document["spec"]
    if "storageClassName" not in spec:
        name = _default_storage_class(core)
        if name:
            spec["storageClassName"] = name
    add_finalizer(document, "kubernetes.io/pvc-protection")


def _default_storage_class(core: Core) -> str:
    """The storage class of claims that name none."""
    for item in core.store.table("storage.k8s.io/storageclasses").range(""):
        annotations = load(item)["metadata"].get("annotations") or {}
        if annotations.get("storageclass.kubernetes.io/is-default-class") == "true":
            return item.name
    return ""


_complete_status = complete.status_members(times=("lastProbeTime", "lastTransitionTime"))


def _complete(document: Json) -> Json:
    """Give the source of a claim a group, which is null where it has none."""
    document = _complete_status(document)
    spec: Json = document.get("spec") or {}
    bare = [key for key in ("dataSource", "dataSourceRef") if spec.get(key) is not None and "apiGroup" not in spec[key]]
    if not bare:
        return document
    return {**document, "spec": {**spec, **{key: {"apiGroup": None, **spec[key]} for key in bare}}}


def _check(document: Json) -> list[FieldError]:
    return check_claim_spec(document.get("spec") or {}, "spec")


def _check_update(new: Json, old: Json) -> list[FieldError]:
    """Check an update of a PersistentVolumeClaim."""
    spec, old_spec = dict(new.get("spec") or {}), dict(old.get("spec") or {})
    bound = (old.get("status") or {}).get("phase") == "Bound"
    if bound:
        spec = with_old(spec, old_spec, ("resources", "volumeAttributesClassName"))
    if not old_spec.get("volumeName") and "volumeName" in spec:
        old_spec["volumeName"] = spec["volumeName"]
    # A claim without a class may get the default class later; an empty class is final.
    if old_spec.get("storageClassName") is None:
        spec.pop("storageClassName", None)
    errors: list[FieldError] = []
    if spec != old_spec:
        detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound"
        errors.append(forbidden_field("spec", f"{detail} claims\n{changed_fields(old_spec, spec)}"))
    sizes = [_size(claim.get("spec") or {}) for claim in (new, old)]
    kept = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
    if sizes[0] < sizes[1] and sizes[0] <= quantity.exact(kept):
        where = "spec.resources.requests.storage"
        errors.append(forbidden_field(where, "field can not be less than status.capacity"))
    return errors + check_unchanged(spec, old_spec, ["volumeMode"])


def _size(spec: Json) -> Fraction:
    return quantity.exact(((spec.get("resources") or {}).get("requests") or {}).get("storage", "0"))


def _cells(document: Json, now: datetime) -> list[Any]:
    spec, status = cells.spec(document), cells.status(document)
    phase = "Terminating" if document["metadata"].get("deletionTimestamp") else status.get("phase", "")
    volume = spec.get("volumeName", "")
    capacity = (status.get("capacity") or {}).get("storage", "") if volume else ""
    modes = access_modes(status.get("accessModes") or ()) if volume else ""
    return [
        cells.name(document),
        phase,
        volume,
        capacity,
        modes,
        class_name(document),
        spec.get("volumeAttributesClassName") or "<unset>",
        cells.age(document, now),
        spec.get("volumeMode", "<unset>"),
    ]


def _usage(document: Json) -> Usage:
    spec = document.get("spec") or {}
    storage = amounts(spec, "requests").get("storage", Fraction())
    name = class_name(document)
    used: Usage = {"requests.storage": storage}
    if name:
        used[f"{name}.{_BY_CLASS}/requests.storage"] = storage
        used[f"{name}.{_BY_CLASS}/persistentvolumeclaims"] = Fraction(1)
    return used


def _covered(scope: Scope, document: Json) -> bool:
    """Whether a scope of a quota covers a claim, by the attribute classes that it has or gets."""
    spec, status = document.get("spec") or {}, document.get("status") or {}
    classes = {
        spec.get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    }
    return scope.name == "VolumeAttributesClass" and scope.selects({name for name in classes if name})


PERSISTENT_VOLUME_CLAIMS = Resource(
    kind="PersistentVolumeClaim",
    plural="persistentvolumeclaims",
    short_names=("pvc",),
    subresources=("status",),
    default=_default,
    complete=_complete,
    prepare_create=_prepare_create,
    deletion=Deletion(returns_object=True),
    quota=Quota(counted=True, usage=_usage, covers=_covered, grows=True),
    checks=Checks(object=_check, update=_check_update),
    table=Table("Name,Status,Volume,Capacity,Access Modes,StorageClass,VolumeAttributesClass,Age,+VolumeMode", _cells),
)
