"""Snapshots: every object that a plan depends on, in the file format of upstream's `/get-snapshot`."""

from __future__ import annotations

import io
import zipfile
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
from spinney.scheduler.place.reservations import RECORD_KEY, RECORD_SUFFIX
from spinney.scheduler.state.departures import FREED_KEY

_FILE = "snapshot.json"

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
    """The zip file of a snapshot; data of ConfigMaps is left out, except the scheduler's own records."""
    raw = {name: snapshot.objects.get(kind.resource, []) for name, kind in KINDS.items()}
    raw["configMaps"] = [_without_contents(config_map) for config_map in raw["configMaps"]]
    document = {"config": snapshot.config, "schedulerParams": snapshot.parameters, "rawObjects": raw}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_FILE, encode(document))
    return buffer.getvalue()


def _without_contents(config_map: Json) -> Json:
    data = config_map.get("data") or {}
    kept = {key: data[key] for key in (RECORD_KEY, FREED_KEY) if key in data} if _is_record(config_map) else {}
    return {"metadata": config_map["metadata"], **({"data": kept} if kept else {})}


def _is_record(config_map: Json) -> bool:
    return str(config_map["metadata"].get("name", "")).endswith(RECORD_SUFFIX)


def read(content: bytes) -> Snapshot:
    """A snapshot from a zip file, or from the JSON that is in it."""
    try:
        if zipfile.is_zipfile(io.BytesIO(content)):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                content = archive.read(_FILE)
        document = msgspec.json.decode(content)
    except (KeyError, msgspec.DecodeError, zipfile.BadZipFile) as error:
        raise SnapshotError(f"not a snapshot: expected a zip file with {_FILE} in it ({error})") from error
    raw = document.get("rawObjects") if isinstance(document, dict) else None
    if not isinstance(raw, dict):
        raise SnapshotError(f"not a snapshot: {_FILE} has no rawObjects")
    objects = {kind.resource: list(raw.get(name) or []) for name, kind in KINDS.items()}
    return Snapshot(objects, document.get("config") or {}, document.get("schedulerParams") or {})
