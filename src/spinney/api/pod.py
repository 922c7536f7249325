"""Pods: every field that an operator, a grouper, a scheduler, a binder or a kubelet reads."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import msgspec

from spinney.api.affinity import Affinity, Toleration, TopologySpreadConstraint
from spinney.api.meta import Condition, Json, Object, ObjectMeta, Resource, Struct
from spinney.api.quantity import ResourceList


class Present(Struct, frozen=True):
    """A part of which only the presence is read; its fields would cost memory in every cached pod."""


class ClaimName(Struct, frozen=True):
    """One of the pod's resource claims, or one request in it, that a container uses."""

    name: str = ""
    request: str = ""


class Resources(Struct, frozen=True):
    """The requests and limits of a container."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ClaimName, ...] = ()


class ContainerPort(Struct, frozen=True):
    """A port; one with a host port occupies that port of the node."""

    name: str = ""
    container_port: int = 0
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class KeyRef(Struct, frozen=True):
    """A key of a ConfigMap or a Secret."""

    name: str = ""
    key: str = ""
    optional: bool = False


class FieldRef(Struct, frozen=True):
    """A field of the pod itself."""

    field_path: str = ""


class EnvSource(Struct, frozen=True):
    """Where a variable's value comes from."""

    field_ref: FieldRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None
    resource_field_ref: Present | None = None


class EnvVar(Struct, frozen=True):
    """One environment variable."""

    name: str = ""
    value: str = ""
    value_from: EnvSource | None = None


class OptionalReference(Struct, frozen=True):
    """A ConfigMap or a Secret, possibly optional."""

    name: str = ""
    optional: bool = False


class EnvFrom(Struct, frozen=True):
    """A ConfigMap or Secret whose keys all become variables."""

    prefix: str = ""
    config_map_ref: OptionalReference | None = None
    secret_ref: OptionalReference | None = None


class VolumeMount(Struct, frozen=True):
    """A volume that the container uses."""

    name: str = ""


class Container(Struct, frozen=True):
    """A container; as an init container with restart policy Always it is a sidecar."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFrom, ...] = ()
    resources: Resources = Resources()
    volume_mounts: tuple[VolumeMount, ...] = ()
    restart_policy: str = ""
    readiness_probe: Json | None = None
    startup_probe: Json | None = None


class ClaimVolume(Struct, frozen=True):
    """A PersistentVolumeClaim as a volume."""

    claim_name: str = ""
    read_only: bool = False


class SecretVolume(Struct, frozen=True):
    """A Secret as a volume."""

    secret_name: str = ""
    optional: bool = False


class VolumeClaimTemplate(Struct, frozen=True):
    """The claim that an ephemeral volume gets for itself."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Json = {}


class EphemeralVolume(Struct, frozen=True):
    """A volume whose claim is made with the pod, named `<pod>-<volume>`."""

    volume_claim_template: VolumeClaimTemplate = VolumeClaimTemplate()


class CsiVolume(Struct, frozen=True):
    """A volume that a driver makes inline."""

    driver: str = ""


class Volume(Struct, frozen=True):
    """A volume of the pod; exactly one source is set."""

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    config_map: OptionalReference | None = None
    secret: SecretVolume | None = None
    ephemeral: EphemeralVolume | None = None
    csi: CsiVolume | None = None
    empty_dir: Present | None = None
    projected: Present | None = None
    downward_api: Present | None = msgspec.field(default=None, name="downwardAPI")
    host_path: Present | None = None


class SchedulingGate(Struct, frozen=True):
    """A gate that keeps the pod from being scheduled until it is removed."""

    name: str = ""


class WorkloadRef(Struct, frozen=True):
    """The gang that a pod belongs to on Kubernetes 1.35."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class SchedulingGroup(Struct, frozen=True):
    """The gang that a pod belongs to from Kubernetes 1.36 on."""

    pod_group_name: str = ""


class PodResourceClaim(Struct, frozen=True):
    """A device claim of the pod: an existing one, or a template to make one from."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class LocalReference(Struct, frozen=True):
    """An object of the same namespace."""

    name: str = ""


class ReadinessGate(Struct, frozen=True):
    """A condition that must be True, besides the containers, for the pod to be ready."""

    condition_type: str = ""


class PodSpec(Struct, frozen=True):
    """The spec of a pod: its containers and placement rules."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    scheduler_name: str = ""
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    workload_ref: WorkloadRef | None = None
    scheduling_group: SchedulingGroup | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: Resources | None = None
    overhead: ResourceList = {}
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    restart_policy: str = "Always"
    runtime_class_name: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    hostname: str = ""
    subdomain: str = ""
    host_network: bool = False
    service_account_name: str = ""
    image_pull_secrets: tuple[LocalReference, ...] = ()
    readiness_gates: tuple[ReadinessGate, ...] = ()


class Waiting(Struct, frozen=True):
    """A container that has not started, with the reason."""

    reason: str = ""
    message: str = ""


class Running(Struct, frozen=True):
    """A container that is running."""

    started_at: datetime | None = None


class Terminated(Struct, frozen=True):
    """A container that has ended, with its result."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(Struct, frozen=True):
    """One of waiting, running, terminated."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct, frozen=True):
    """The status of a container."""

    name: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0


class ResourceClaimStatus(Struct, frozen=True):
    """The claim that was made for a claim template of the pod."""

    name: str = ""
    resource_claim_name: str = ""


class RequestMapping(Struct, frozen=True):
    """Which device request serves an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedResourceClaimStatus(Struct, frozen=True):
    """The claim that serves extended resources of the pod from devices."""

    resource_claim_name: str = ""
    request_mappings: tuple[RequestMapping, ...] = ()


class PodStatus(Struct, frozen=True):
    """The status of a pod."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")
    pod_ip: str = msgspec.field(default="", name="podIP")
    start_time: datetime | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[ResourceClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None
    qos_class: str = ""


class Pod(Object, frozen=True):
    """A pod."""

    resource: ClassVar[Resource] = Resource("v1", "Pod", "pods")

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplate(Struct, frozen=True):
    """The template of a workload's pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
