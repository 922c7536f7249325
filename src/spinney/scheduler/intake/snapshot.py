"""Snapshots: every object that a plan depends on, in the file format of upstream's `/get-snapshot`."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from spinney.api.core import ConfigMap, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod
from spinney.api.kai import BindRequest, PodGroup, Queue, Topology
from spinney.api.meta import Json, Object, Resource, encode
from spinney.api.noderesourcetopology import NodeResourceTopology
from spinney.api.policy import PodDisruptionBudget
from spinney.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from spinney.api.scheduling import PriorityClass
from spinney.api.storage import CsiDriver, CsiNode, CsiStorageCapacity, StorageClass, VolumeAttachment
from spinney.scheduler.intake.redaction import (
    redacted,
    redacted_claim,
    redacted_device_class,
    redacted_pod,
    redacted_storage_class,
    redacted_volume,
)
from spinney.scheduler.place.reservations import RECORD_KEY, RECORD_SUFFIX
from spinney.scheduler.state.departures import FREED_KEY

_FILE = "snapshot.json"
# 10,000 nodes with 80,000 pods take a tenth of it.
_LARGEST = 4 << 30

# What each list of `rawObjects` holds. The last four are ours: upstream does not look at them, or not in a snapshot.
KINDS: dict[str, type[Object]] = {
    "pods": Pod,
    "nodes": Node,
    "queues": Queue,
    "podGroups": PodGroup,
    "bindRequests": BindRequest,
    "priorityClasses": PriorityClass,
    "configMaps": ConfigMap,
    "persistentVolumes": PersistentVolume,
    "persistentVolumeClaims": PersistentVolumeClaim,
    "csiStorageCapacities": CsiStorageCapacity,
    "storageClasses": StorageClass,
    "csiDrivers": CsiDriver,
    "resourceClaims": ResourceClaim,
    "resourceSlices": ResourceSlice,
    "deviceClasses": DeviceClass,
    "topologies": Topology,
    "nodeResourceTopologies": NodeResourceTopology,
    "podDisruptionBudgets": PodDisruptionBudget,
    "namespaces": Namespace,
    "csiNodes": CsiNode,
    "volumeAttachments": VolumeAttachment,
}


class SnapshotError(ValueError):
    """The file is not a snapshot."""


@dataclass(frozen=True)
class Snapshot:
    """Objects as plain data, by kind, and the scheduler's configuration."""

    objects: dict[Resource, list[Json]] = field(default_factory=dict)
    config: Json = field(default_factory=dict)
    parameters: Json = field(default_factory=dict)


def write(snapshot: Snapshot) -> bytes:
    """The zip file of a snapshot, without what may be confidential: see `redaction`."""
    raw = {
        name: [_CUTS.get(kind, redacted)(item) for item in snapshot.objects.get(kind.resource, [])]
        for name, kind in KINDS.items()
    }
    document = {"config": snapshot.config, "schedulerParams": snapshot.parameters, "rawObjects": raw}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_FILE, encode(document))
    return buffer.getvalue()


def _without_contents(config_map: Json) -> Json:
    """A ConfigMap without its data, except the scheduler's own records."""
    data = config_map.get("data") or {}
    kept = {key: data[key] for key in (RECORD_KEY, FREED_KEY) if key in data} if _is_record(config_map) else {}
    return {"metadata": redacted(config_map)["metadata"], **({"data": kept} if kept else {})}


_CUTS: dict[type[Object], Callable[[Json], Json]] = {
    Pod: redacted_pod,
    ConfigMap: _without_contents,
    PersistentVolume: redacted_volume,
    StorageClass: redacted_storage_class,
    ResourceClaim: redacted_claim,
    DeviceClass: redacted_device_class,
}


def _is_record(config_map: Json) -> bool:
    return str(config_map["metadata"].get("name", "")).endswith(RECORD_SUFFIX)


def read(content: bytes) -> Snapshot:
    """A snapshot from a zip file, or from the JSON that is in it."""
    try:
        if zipfile.is_zipfile(io.BytesIO(content)):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                if archive.getinfo(_FILE).file_size > _LARGEST:
                    raise SnapshotError(f"not a snapshot: {_FILE} has more than {_LARGEST} bytes")
                content = archive.read(_FILE)
        document = msgspec.json.decode(content)
    except (KeyError, ValueError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise SnapshotError(f"not a snapshot: expected a zip file with {_FILE} in it ({error})") from error
    raw = document.get("rawObjects") if isinstance(document, dict) else None
    if not isinstance(raw, dict):
        raise SnapshotError(f"not a snapshot: {_FILE} has no rawObjects")
    objects = {kind.resource: _objects(raw, name) for name, kind in KINDS.items()}
    config, parameters = document.get("config") or {}, document.get("schedulerParams") or {}
    if not isinstance(config, dict) or not isinstance(parameters, dict):
        raise SnapshotError("not a snapshot: config and schedulerParams must be objects")
    return Snapshot(objects, config, parameters)


def _objects(raw: Json, name: str) -> list[Json]:
    items = raw.get(name) or []
    if not isinstance(items, list) or not all(_is_object(item) for item in items):
        raise SnapshotError(f"not a snapshot: rawObjects.{name} must be a list of objects with metadata")
    return items


def _is_object(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("metadata"), dict)
