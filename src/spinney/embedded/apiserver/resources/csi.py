"""The kinds that storage drivers use, which are stored without checks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.defaults import add_finalizer, fill
from spinney.embedded.apiserver.resources.record import Deletion, Resource, Table


def _default_driver(document: Json) -> None:
    fill(
        document.setdefault("spec", {}),
        attachRequired=True,
        podInfoOnMount=False,
        volumeLifecycleModes=["Persistent"],
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        requiresRepublish=False,
        seLinuxMount=False,
    )


def _prepare_attributes_class(core: Core, call: Call, document: Json) -> None:
    add_finalizer(document, "kubernetes.io/vac-protection")


def _driver_cells(document: Json, now: datetime) -> list[Any]:
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


def _node_cells(document: Json, now: datetime) -> list[Any]:
    return [cells.name(document), len(cells.spec(document).get("drivers") or ()), cells.age(document, now)]


def _attachment_cells(document: Json, now: datetime) -> list[Any]:
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


def _attributes_class_cells(document: Json, now: datetime) -> list[Any]:
    return [cells.name(document), document.get("driverName", ""), cells.age(document, now)]


CSI_DRIVERS = Resource(
    group="storage.k8s.io",
    kind="CSIDriver",
    plural="csidrivers",
    namespaced=False,
    default=_default_driver,
    allow_unconditional_update=False,
    deletion=Deletion(returns_object=True),
    table=Table(
        "Name,?AttachRequired,?PodInfoOnMount,?StorageCapacity,TokenRequests,?RequiresRepublish,Modes,Age",
        _driver_cells,
    ),
)
CSI_NODES = Resource(
    group="storage.k8s.io",
    kind="CSINode",
    plural="csinodes",
    namespaced=False,
    complete=complete.spec_member("drivers"),
    allow_unconditional_update=False,
    deletion=Deletion(returns_object=True),
    table=Table("Name,#Drivers,Age", _node_cells),
)
CSI_STORAGE_CAPACITIES = Resource(
    group="storage.k8s.io",
    kind="CSIStorageCapacity",
    plural="csistoragecapacities",
    allow_unconditional_update=False,
)
VOLUME_ATTACHMENTS = Resource(
    group="storage.k8s.io",
    kind="VolumeAttachment",
    plural="volumeattachments",
    namespaced=False,
    subresources=("status",),
    complete=complete.status_members({"attached": False}),
    allow_unconditional_update=False,
    deletion=Deletion(returns_object=True),
    table=Table("Name,Attacher,PV,Node,?Attached,Age", _attachment_cells),
)
VOLUME_ATTRIBUTES_CLASSES = Resource(
    group="storage.k8s.io",
    kind="VolumeAttributesClass",
    plural="volumeattributesclasses",
    namespaced=False,
    short_names=("vac",),
    storage_version="v1beta1",
    prepare_create=_prepare_attributes_class,
    deletion=Deletion(returns_object=True),
    table=Table("Name,DriverName,Age", _attributes_class_cells),
)
