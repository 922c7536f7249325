"""What `kubectl get` shows of storage."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources import cells

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _access_modes(modes: Iterable[str]) -> str:
    given = set(modes)
    return ",".join(short for mode, short in _MODES.items() if mode in given)


def _class_name(document: Json) -> str:
    """The storage class; older objects name it in an annotation."""
    annotations = document["metadata"].get("annotations") or {}
    return str(
        annotations.get("volume.beta.kubernetes.io/storage-class") or cells.spec(document).get("storageClassName", "")
    )


def claim(document: Json, now: datetime) -> list[Any]:
    """A PersistentVolumeClaim."""
    spec, status = cells.spec(document), cells.status(document)
    phase = "Terminating" if document["metadata"].get("deletionTimestamp") else status.get("phase", "")
    volume = spec.get("volumeName", "")
    capacity = (status.get("capacity") or {}).get("storage", "") if volume else ""
    modes = _access_modes(status.get("accessModes") or ()) if volume else ""
    return [
        cells.name(document),
        phase,
        volume,
        capacity,
        modes,
        _class_name(document),
        spec.get("volumeAttributesClassName") or "<unset>",
        cells.age(document, now),
        spec.get("volumeMode", "<unset>"),
    ]


def volume(document: Json, now: datetime) -> list[Any]:
    """A PersistentVolume."""
    spec, status = cells.spec(document), cells.status(document)
    claim = spec.get("claimRef") or {}
    phase = "Terminating" if document["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        cells.name(document),
        (spec.get("capacity") or {}).get("storage", ""),
        _access_modes(spec.get("accessModes") or ()),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class_name(document),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        cells.age(document, now),
        spec.get("volumeMode", "<unset>"),
    ]


def storage_class(document: Json, now: datetime) -> list[Any]:
    """A StorageClass."""
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


def driver(document: Json, now: datetime) -> list[Any]:
    """A CSIDriver."""
    spec = cells.spec(document)
    audiences = ",".join(request.get("audience", "") for request in spec.get("tokenRequests") or ())
    return [
        cells.name(document),
        bool(spec.get("attachRequired", True)),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        audiences or "<unset>",
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or "<none>",
        cells.age(document, now),
    ]


def drivers(document: Json, now: datetime) -> list[Any]:
    """A CSINode."""
    return [cells.name(document), len(cells.spec(document).get("drivers") or ()), cells.age(document, now)]


def attachment(document: Json, now: datetime) -> list[Any]:
    """A VolumeAttachment."""
    spec = cells.spec(document)
    volume = (spec.get("source") or {}).get("persistentVolumeName", "")
    attached = bool(cells.status(document).get("attached"))
    return [
        cells.name(document),
        spec.get("attacher", ""),
        volume,
        spec.get("nodeName", ""),
        attached,
        cells.age(document, now),
    ]


def attributes_class(document: Json, now: datetime) -> list[Any]:
    """A VolumeAttributesClass."""
    return [cells.name(document), document.get("driverName", ""), cells.age(document, now)]
