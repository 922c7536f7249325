"""PersistentVolumes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, one_of, required, unsupported
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.defaults import add_finalizer, fill
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Table
from spinney.embedded.apiserver.resources.validation import pod_placement
from spinney.embedded.apiserver.resources.validation.claim_specs import ACCESS_MODES
from spinney.embedded.apiserver.resources.validation.names import changed_fields, check_unchanged

_POLICIES = ("Delete", "Recycle", "Retain")


# Members of a volume's spec that are not its source.
_PLAIN = frozenset(
    (
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    )
)
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    modes, capacity = spec.get("accessModes") or (), spec.get("capacity") or {}
    errors: list[FieldError] = []
    if not modes:
        errors.append(required("spec.accessModes"))
    errors += [unsupported("spec.accessModes", mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if "storage" not in capacity:
        errors.append(required("spec.capacity"))
    for name, amount in capacity.items():
        if quantity.exact(amount) <= 0:
            errors.append(invalid(f"spec.capacity[{name}]", amount, "must be greater than zero"))
    policy, mode = spec.get("persistentVolumeReclaimPolicy"), spec.get("volumeMode", "Filesystem")
    if policy and policy not in _POLICIES:
        errors.append(unsupported("spec.persistentVolumeReclaimPolicy", policy, _POLICIES))
    errors += one_of("spec.volumeMode", mode, ("Block", "Filesystem"))
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    for at, term in enumerate(terms):
        errors += pod_placement.check_node_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{at}]")
    sources = [key for key in spec if key not in _PLAIN]
    if not sources:
        errors.append(required("spec", "must specify a volume type"))
    errors += [forbidden_field(f"spec.{extra}", "may not specify more than 1 volume type") for extra in sources[1:]]
    if "local" in sources and spec.get("nodeAffinity") is None:
        errors.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    return errors


def _check_update(new: Json, old: Json) -> list[FieldError]:
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    before, now = ({key: value for key, value in source.items() if key not in _PLAIN} for source in (old_spec, spec))
    errors: list[FieldError] = []
    if before != now:
        path = "spec.persistentvolumesource"
        errors.append(forbidden_field(path, f"{path} is immutable after creation\n{changed_fields(before, now)}"))
    return errors + check_unchanged(spec, old_spec, ["volumeMode"])


def _default(document: Json) -> None:
    spec = document.setdefault("spec", {})
    fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if spec.get("hostPath"):
        spec["hostPath"].setdefault("type", "")
    document.setdefault("status", {}).setdefault("phase", "Pending")


def _prepare_create(core: Core, call: Call, document: Json) -> None:
    document["status"] = {"phase": "Pending", "lastPhaseTransitionTime": core.timestamp()}
    add_finalizer(document, "kubernetes.io/pv-protection")


def _prepare_status(core: Core, volume: Json, old: Json) -> None:
    """Record when the phase of a volume changed."""
    status, before = volume.get("status") or {}, old.get("status") or {}
    if status.get("phase") != before.get("phase"):
        volume["status"] = {**status, "lastPhaseTransitionTime": core.timestamp()}
    elif "lastPhaseTransitionTime" in before:
        volume["status"] = {**status, "lastPhaseTransitionTime": before["lastPhaseTransitionTime"]}


def access_modes(modes: Iterable[str]) -> str:
    """Access modes as kubectl abbreviates them."""
    named = set(modes)
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in named)


def class_name(document: Json) -> str:
    """The storage class; older objects name it in an annotation."""
    annotations = document["metadata"].get("annotations") or {}
    return str(
        annotations.get("volume.beta.kubernetes.io/storage-class") or cells.spec(document).get("storageClassName", "")
    )


def _cells(document: Json, now: datetime) -> list[Any]:
    spec, status = cells.spec(document), cells.status(document)
    claim = spec.get("claimRef") or {}
    phase = "Terminating" if document["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        cells.name(document),
        (spec.get("capacity") or {}).get("storage", ""),
        access_modes(spec.get("accessModes") or ()),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        class_name(document),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        cells.age(document, now),
        spec.get("volumeMode", "<unset>"),
    ]


PERSISTENT_VOLUMES = Resource(
    kind="PersistentVolume",
    plural="persistentvolumes",
    namespaced=False,
    short_names=("pv",),
    subresources=("status",),
    default=_default,
    prepare_create=_prepare_create,
    prepare_status=_prepare_status,
    deletion=Deletion(returns_object=True),
    checks=Checks(object=_check, update=_check_update),
    table=Table(
        "Name,Capacity,Access Modes,Reclaim Policy,Status,Claim,StorageClass,VolumeAttributesClass,Reason,Age,"
        "+VolumeMode",
        _cells,
    ),
)
