"""storage.k8s.io: the objects that the binder reads to bind volumes."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from spinney.api.meta import Object, Resource, Struct
from spinney.api.quantity import Quantity
from spinney.api.selector import LabelSelector

VERSION = "storage.k8s.io/v1"


class TopologyRequirement(Struct, frozen=True):
    """A node label and its allowed values."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(Struct, frozen=True):
    """Requirements that must all hold."""

    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(Object, frozen=True):
    """How volumes are provisioned; WaitForFirstConsumer leaves the place to the scheduler."""

    resource: ClassVar[Resource] = Resource(VERSION, "StorageClass", "storageclasses", namespaced=False)

    provisioner: str = ""
    parameters: dict[str, str] = {}
    reclaim_policy: str = ""
    volume_binding_mode: str = ""
    allow_volume_expansion: bool = False
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class VolumeCount(Struct, frozen=True):
    """The number of a driver's volumes that a node can attach."""

    count: int | None = None


class CsiNodeDriver(Struct, frozen=True):
    """A driver on a node."""

    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeCount | None = None


class CsiNodeSpec(Struct, frozen=True):
    """The drivers on a node."""

    drivers: tuple[CsiNodeDriver, ...] = ()


class CsiNode(Object, frozen=True):
    """The storage drivers of a node."""

    resource: ClassVar[Resource] = Resource(VERSION, "CSINode", "csinodes", namespaced=False)

    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(Struct, frozen=True):
    """The properties of a storage driver."""

    attach_required: bool | None = None
    storage_capacity: bool = False


class CsiDriver(Object, frozen=True):
    """A storage driver."""

    resource: ClassVar[Resource] = Resource(VERSION, "CSIDriver", "csidrivers", namespaced=False)

    spec: CsiDriverSpec = CsiDriverSpec()


class CsiStorageCapacity(Object, frozen=True):
    """How much a driver could still provision, for one class in one part of the cluster."""

    resource: ClassVar[Resource] = Resource(VERSION, "CSIStorageCapacity", "csistoragecapacities")

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeSource(Struct, frozen=True):
    """The volume that is attached."""

    persistent_volume_name: str = ""


class VolumeAttachmentSpec(Struct, frozen=True):
    """The volume and node of an attachment."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeSource = VolumeSource()


class VolumeAttachment(Object, frozen=True):
    """A volume that is attached, or being attached, to a node."""

    resource: ClassVar[Resource] = Resource(VERSION, "VolumeAttachment", "volumeattachments", namespaced=False)

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
