"""The core group without pods: nodes, namespaces, services, configuration, volumes, events."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import msgspec

from spinney.api.affinity import NodeSelector, Taint
from spinney.api.meta import Condition, Json, Object, Resource, Struct
from spinney.api.pod import (
    Container,
    ContainerState,
    ContainerStatus,
    EnvVar,
    LocalReference,
    Pod,
    PodSpec,
    PodStatus,
    PodTemplate,
    Resources,
    Volume,
)
from spinney.api.quantity import ResourceList
from spinney.api.selector import LabelSelector

__all__ = [
    "ConfigMap",
    "Container",
    "ContainerState",
    "ContainerStatus",
    "Endpoints",
    "EnvVar",
    "Event",
    "EventSource",
    "LimitRange",
    "LocalReference",
    "Namespace",
    "Node",
    "NodeAddress",
    "NodeSpec",
    "NodeStatus",
    "ObjectReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodSpec",
    "PodStatus",
    "PodTemplate",
    "ResourceQuota",
    "Resources",
    "Secret",
    "Service",
    "ServiceAccount",
    "ServicePort",
    "Volume",
]


class ObjectReference(Struct, frozen=True):
    """A reference to any object."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""
    resource_version: str = ""


class NodeSpec(Struct, frozen=True):
    """Settings of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeAddress(Struct, frozen=True):
    """An address of a node."""

    type: str = ""
    address: str = ""


class NodeStatus(Struct, frozen=True):
    """Resources and conditions of a node."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()


class Node(Object, frozen=True):
    """A machine."""

    resource: ClassVar[Resource] = Resource("v1", "Node", "nodes", namespaced=False)

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NamespaceSpec(Struct, frozen=True):
    """Finalizers of a namespace."""

    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Struct, frozen=True):
    """The phase of a namespace: Active or Terminating."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class Namespace(Object, frozen=True):
    """A namespace."""

    resource: ClassVar[Resource] = Resource("v1", "Namespace", "namespaces", namespaced=False)

    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class ServicePort(Struct, frozen=True):
    """A port of a service."""

    name: str = ""
    protocol: str = "TCP"
    app_protocol: str | None = None
    port: int = 0
    # A number, or the name of a container's port.
    target_port: int | str = 0


class ServiceSpec(Struct, frozen=True):
    """The pods of a service, and its addresses and ports."""

    selector: dict[str, str] = {}
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    type: str = ""
    ports: tuple[ServicePort, ...] = ()
    publish_not_ready_addresses: bool = False


class Service(Object, frozen=True):
    """A stable address for pods."""

    resource: ClassVar[Resource] = Resource("v1", "Service", "services")

    spec: ServiceSpec = ServiceSpec()

    @property
    def selects(self) -> bool:
        """Whether a selector determines its endpoints."""
        return bool(self.spec.selector) and self.spec.type != "ExternalName"

    @property
    def headless(self) -> bool:
        """Whether it is headless."""
        return self.spec.cluster_ip in ("", "None")


class Endpoints(Object, frozen=True):
    """The addresses behind a service, in one object."""

    resource: ClassVar[Resource] = Resource("v1", "Endpoints", "endpoints")

    subsets: tuple[Json, ...] = ()


class ConfigMap(Object, frozen=True):
    """Configuration as text."""

    resource: ClassVar[Resource] = Resource("v1", "ConfigMap", "configmaps")

    data: dict[str, str] = {}
    immutable: bool = False


class Secret(Object, frozen=True):
    """Confidential data, base64 on the wire."""

    resource: ClassVar[Resource] = Resource("v1", "Secret", "secrets")

    type: str = ""
    data: dict[str, str] = {}
    immutable: bool = False


class ServiceAccount(Object, frozen=True):
    """An identity for pods."""

    resource: ClassVar[Resource] = Resource("v1", "ServiceAccount", "serviceaccounts")

    secrets: tuple[ObjectReference, ...] = ()
    image_pull_secrets: tuple[LocalReference, ...] = ()
    automount_service_account_token: bool | None = None


class EventSource(Struct, frozen=True):
    """Who reported an event."""

    component: str = ""
    host: str = ""


class Event(Object, frozen=True):
    """Something that happened to an object."""

    resource: ClassVar[Resource] = Resource("v1", "Event", "events")

    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    action: str = ""
    source: EventSource = EventSource()
    reporting_component: str = ""
    reporting_instance: str = ""
    count: int = 0
    event_time: datetime | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None


class VolumeResources(Struct, frozen=True):
    """The requested amount of storage."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class PersistentVolumeClaimSpec(Struct, frozen=True):
    """The requested storage."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str = ""


class PersistentVolumeClaimStatus(Struct, frozen=True):
    """The bound storage."""

    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: ResourceList = {}


class PersistentVolumeClaim(Object, frozen=True):
    """A request for storage."""

    resource: ClassVar[Resource] = Resource("v1", "PersistentVolumeClaim", "persistentvolumeclaims")

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class VolumeNodeAffinity(Struct, frozen=True):
    """The nodes that can use a volume."""

    required: NodeSelector | None = None


class CsiSource(Struct, frozen=True):
    """The driver behind a volume; drivers limit how many a node takes."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Struct, frozen=True):
    """A piece of storage."""

    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str = ""
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None


class PersistentVolumeStatus(Struct, frozen=True):
    """Available, Bound, Released or Failed."""

    phase: str = ""
    reason: str = ""
    message: str = ""


class PersistentVolume(Object, frozen=True):
    """A piece of storage of the cluster."""

    resource: ClassVar[Resource] = Resource("v1", "PersistentVolume", "persistentvolumes", namespaced=False)

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class LimitRange(Object, frozen=True):
    """Defaults and limits for the containers of a namespace."""

    resource: ClassVar[Resource] = Resource("v1", "LimitRange", "limitranges")

    spec: Json = {}


class ResourceQuotaSpec(Struct, frozen=True):
    """The limits of a namespace."""

    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()


class ResourceQuotaStatus(Struct, frozen=True):
    """The limits and the usage of a namespace."""

    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(Object, frozen=True):
    """A limit on the resources of a namespace."""

    resource: ClassVar[Resource] = Resource("v1", "ResourceQuota", "resourcequotas")

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()
