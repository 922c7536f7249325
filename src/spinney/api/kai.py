"""scheduling.run.ai and kai.scheduler's Topology: the objects of scheduler, pod grouper and binder."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from spinney.api.kaiconfig import Config
from spinney.api.kaishard import SchedulingShard
from spinney.api.meta import Json, Object, Resource, Struct
from spinney.api.quantity import ResourceList
from spinney.api.resource import AllocationResult, DeviceRequest
from spinney.api.schema import AGE, ATOMIC, NODE_LABEL, REQUIRED, Column, Definition, Int32, enum, rule, rules, schema

__all__ = [
    "BindRequest",
    "Config",
    "PodGroup",
    "Queue",
    "SchedulingShard",
    "SubGroup",
    "Topology",
    "TopologyConstraint",
]

_DNS_LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_COUNT = schema(minimum=0)
_ONE_MINIMUM = rule(
    "!(has(self.minMember) && has(self.minSubGroup))", "minMember and minSubGroup are mutually exclusive"
)


class TopologyConstraint(Struct, frozen=True):
    """The topology, and the level within which pods must or should be; a level is a node label key or an alias."""

    topology: str = ""
    required_topology_level: str = ""
    preferred_topology_level: str = ""


# Deeper trees mean nothing that a cluster has, and code that follows them could not return.
MOST_SUBGROUP_LEVELS = 32


class SubGroup(Struct, frozen=True):
    """A part of a group with a minimum of its own; the tree is flattened by `parent`."""

    rules: ClassVar[tuple[Json, ...]] = (_ONE_MINIMUM,)

    name: Annotated[str, schema(minLength=1, pattern=_DNS_LABEL), REQUIRED] = ""
    parent: Annotated[str, schema(pattern=_DNS_LABEL)] = ""
    min_member: Annotated[Int32 | None, _COUNT] = None
    min_sub_group: Annotated[Int32 | None, _COUNT] = None
    topology_constraint: TopologyConstraint | None = None


class PodGroupSpec(Struct, frozen=True):
    """The spec of a gang: its members, queue and rules."""

    rules: ClassVar[tuple[Json, ...]] = (_ONE_MINIMUM,)

    min_member: Annotated[Int32 | None, _COUNT] = None
    min_sub_group: Annotated[Int32 | None, _COUNT] = None
    queue: str = ""
    priority_class_name: str = ""
    preemptibility: Annotated[str, enum("preemptible", "non-preemptible")] = ""
    topology_constraint: TopologyConstraint = TopologyConstraint()
    sub_groups: tuple[SubGroup, ...] = ()
    mark_unschedulable: bool | None = None
    scheduling_backoff: Int32 | None = None
    preemption_delay: str = ""
    staleness_grace_period: str = ""


class PodGroupCondition(Struct, frozen=True):
    """A condition of a group; declared by the format, written by nobody."""

    type: str = ""
    status: str = ""
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class QueueDetails(Struct, frozen=True):
    """The queue's numbers behind a refusal."""

    name: str = ""
    queue_requested_resources: ResourceList = {}
    queue_deserved_resources: ResourceList = {}
    queue_allocated_resources: ResourceList = {}
    queue_allocated_non_preemptible_resources: ResourceList = {}
    queue_resource_limits: ResourceList = {}
    pod_group_requested_resources: ResourceList = {}
    pod_group_requested_non_preemptible_resources: ResourceList = {}


class ExplanationDetails(Struct, frozen=True):
    """Numbers behind an explanation."""

    queue_details: QueueDetails | None = None


class Explanation(Struct, frozen=True):
    """One reason why a group could not be scheduled."""

    reason: str = ""
    message: str = ""
    details: ExplanationDetails | None = None


class SchedulingCondition(Struct, frozen=True):
    """Why a group cannot be scheduled on one node pool."""

    type: str = ""
    node_pool: str = ""
    status: str = ""
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""
    reasons: tuple[Explanation, ...] = ()


class PodGroupResources(Struct, frozen=True):
    """The requested and allocated resources of a group."""

    requested: ResourceList = {}
    allocated: ResourceList = {}
    allocated_non_preemptible: ResourceList = {}


class PodGroupStatus(Struct, frozen=True):
    """The state of a group."""

    # Ours; upstream's definition does not have it, and drops it.
    phase: str = ""
    conditions: tuple[PodGroupCondition, ...] = ()
    scheduling_conditions: tuple[SchedulingCondition, ...] = ()
    resources_status: PodGroupResources = PodGroupResources()


class PodGroup(Object, frozen=True):
    """A gang, as the scheduler reads it."""

    resource: ClassVar[Resource] = Resource("scheduling.run.ai/v2alpha2", "PodGroup", "podgroups")
    crd: ClassVar[Definition] = Definition(
        short_names=("pg",),
        columns=(
            Column("Phase", ".status.phase", "string"),
            Column("Queue", ".spec.queue", "string"),
            Column("Min", ".spec.minMember"),
            Column("Priority", ".spec.priorityClassName", "string"),
            Column("Reason", ".status.schedulingConditions[*].reason", "string", wide=True),
            Column("Message", ".status.schedulingConditions[*].message", "string", wide=True),
            AGE,
        ),
    )

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class QueueResource(Struct, frozen=True):
    """One resource of a queue: -1 is unlimited; an absent limit is 0, nothing beyond the quota."""

    quota: float = 0
    over_quota_weight: float = 0
    limit: float = 0


class QueueResources(Struct, frozen=True):
    """GPUs in devices, CPU in thousandths of a core, memory in megabytes (10⁶)."""

    gpu: QueueResource = QueueResource()
    cpu: QueueResource = QueueResource()
    memory: QueueResource = QueueResource()


class QueueSpec(Struct, frozen=True):
    """The entitlement of a queue."""

    display_name: str = ""
    parent_queue: str = ""
    priority: int | None = None
    preempt_min_runtime: str = ""
    reclaim_min_runtime: str = ""
    resources: QueueResources | None = None


class QueueCondition(Struct, frozen=True):
    """A condition of a queue."""

    type: Annotated[str, REQUIRED] = ""
    status: Annotated[str, REQUIRED] = ""
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class QueueStatus(Struct, frozen=True):
    """The resources that a queue and its children use."""

    child_queues: tuple[str, ...] = ()
    requested: ResourceList = {}
    allocated: ResourceList = {}
    allocated_non_preemptible: ResourceList = {}
    conditions: tuple[QueueCondition, ...] = ()


class Queue(Object, frozen=True):
    """A share of the cluster."""

    resource: ClassVar[Resource] = Resource("scheduling.run.ai/v2", "Queue", "queues", namespaced=False)
    crd: ClassVar[Definition] = Definition(
        columns=(
            Column("Priority", ".spec.priority", "string"),
            Column("Parent", ".spec.parentQueue", "string"),
            Column("Children", ".status.childQueues", "string"),
            Column("DisplayName", ".spec.displayName", "string"),
            Column("GPUs", r".status.allocated.nvidia\.com/gpu", "string"),
            Column("Requested", r".status.requested.nvidia\.com/gpu", "string"),
            Column("Quota", ".spec.resources.gpu.quota", "number"),
            Column("Limit", ".spec.resources.gpu.limit", "number"),
        )
    )
    rules: ClassVar[tuple[Json, ...]] = (
        rule("has(self.spec) && has(self.spec.resources)", "resources must be specified", fieldPath=".spec.resources"),
    )

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


class ReceivedGpu(Struct, frozen=True):
    """The number of devices, and the portion of each."""

    count: int = 0
    portion: str = ""


class ClaimAllocation(Struct, frozen=True):
    """The allocation of one device claim of the pod."""

    name: str = ""
    allocation: AllocationResult | None = None


class ContainerMapping(Struct, frozen=True):
    """Which device request serves an extended resource of a container."""

    container_name: Annotated[str, REQUIRED] = ""
    resource_name: Annotated[str, REQUIRED] = ""
    request_name: Annotated[str, REQUIRED] = ""


class ExtendedClaimAllocation(Struct, frozen=True):
    """The claim that serves extended resources from devices."""

    allocation: AllocationResult | None = None
    device_requests: tuple[DeviceRequest, ...] = ()
    container_mappings: tuple[ContainerMapping, ...] = ()


class NumaPlacement(Struct, frozen=True):
    """The resources expected in one NUMA zone."""

    zone: Annotated[str, REQUIRED] = ""
    amount: Annotated[ResourceList, REQUIRED] = {}


class BindRequestSpec(Struct, frozen=True):
    """A decision: this pod, on this node, with these devices."""

    pod_name: str = ""
    selected_node: str = ""
    received_resource_type: str = ""
    received_gpu: ReceivedGpu | None = msgspec.field(default=None, name="receivedGPU")
    selected_gpu_groups: tuple[str, ...] = msgspec.field(default=(), name="selectedGPUGroups")
    resource_claim_allocations: tuple[ClaimAllocation, ...] = ()
    extended_resource_claim_allocation: ExtendedClaimAllocation | None = None
    predicted_numa_zones: tuple[NumaPlacement, ...] = msgspec.field(default=(), name="predictedNUMAZones")
    backoff_limit: Int32 | None = None


class BindRequestStatus(Struct, frozen=True):
    """The result of a binding."""

    phase: str = ""
    reason: str = ""
    failed_attempts: Int32 = 0


class BindRequest(Object, frozen=True):
    """The scheduler's request to the binder."""

    resource: ClassVar[Resource] = Resource("scheduling.run.ai/v1alpha2", "BindRequest", "bindrequests")
    crd: ClassVar[Definition] = Definition(
        columns=(
            Column("Pod", ".spec.podName", "string"),
            Column("Node", ".spec.selectedNode", "string"),
            Column("Phase", ".status.phase", "string"),
            Column("Reason", ".status.reason", "string", wide=True),
            AGE,
        )
    )

    spec: BindRequestSpec = BindRequestSpec()
    status: BindRequestStatus = BindRequestStatus()


class Level(Struct, frozen=True):
    """A level of a topology: the node label of its domains."""

    node_label: Annotated[str, schema(minLength=1, maxLength=316, pattern=NODE_LABEL), REQUIRED] = ""
    alias: Annotated[str, schema(minLength=1, maxLength=316, pattern=NODE_LABEL)] = ""


class TopologySpec(Struct, frozen=True):
    """Levels, outermost first."""

    levels: Annotated[
        tuple[Level, ...],
        schema(minItems=1, maxItems=16),
        ATOMIC,
        rules(
            rule(
                "self.map(l, l.nodeLabel) == oldSelf.map(l, l.nodeLabel)",
                "nodeLabel structure is immutable; only aliases may be edited",
            ),
            rule(
                "size(self.filter(i, size(self.filter(j, j.nodeLabel == i.nodeLabel)) > 1)) == 0",
                "nodeLabel must be unique",
            ),
            rule(
                "size(self.filter(i, i.nodeLabel == 'kubernetes.io/hostname')) == 0 || "
                "self[size(self) - 1].nodeLabel == 'kubernetes.io/hostname'",
                "the kubernetes.io/hostname label can only be used at the lowest level of topology",
            ),
            rule(
                "self.all(i, !has(i.alias) || self.exists_one(j, has(j.alias) && j.alias == i.alias))",
                "aliases must be unique within the topology",
            ),
            rule(
                "self.all(i, !has(i.alias) || !self.exists(j, j.nodeLabel == i.alias))",
                "an alias must not equal a nodeLabel",
            ),
        ),
        REQUIRED,
    ] = ()


class Topology(Object, frozen=True):
    """The topology of the cluster's nodes."""

    resource: ClassVar[Resource] = Resource("kai.scheduler/v1alpha1", "Topology", "topologies", namespaced=False)
    crd: ClassVar[Definition] = Definition(status=False)

    spec: Annotated[TopologySpec, REQUIRED] = TopologySpec()
