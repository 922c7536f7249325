"""Convert nodes, queues, topologies and PodGroups into the specs of the scheduler's state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from spinney.api import duration, labels
from spinney.api.affinity import Taint
from spinney.api.conditions import find
from spinney.api.core import Node, Pod
from spinney.api.kai import PodGroup, Queue, QueueResource, Topology, TopologyConstraint
from spinney.api.numbers import whole_number
from spinney.api.quantity import milli
from spinney.api.scheduling import PriorityClass
from spinney.api.storage import CsiNode
from spinney.scheduler.state.refusal import Code, Refusal
from spinney.scheduler.state.specs import (
    DEFAULT_GPU_MEMORY,
    DEFAULT_GROUP,
    Constraint,
    GroupSpec,
    JobSpec,
    NodeSpec,
    QueueSpec,
    Share,
    TopologySpec,
)

_NON_PREEMPTIBLE_FROM = 100
_DEFAULT_PRIORITY = 50
# A label in MiB above this is a mistake of its writer: the value is in bytes.
_MEBIBYTES_IN_A_TEBIBYTE = 1 << 20
# No machine has so many: some work on a node grows with its GPUs, and no node may stop the others.
MOST_GPUS = 4096
_BLOCKING = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


def node_spec(node: Node, storage: CsiNode | None = None) -> NodeSpec:
    """The spec of a node, with the volume limits of its CSI drivers."""
    node_labels = node.metadata.labels
    memory = _gpu_memory(node_labels)
    return NodeSpec(
        name=node.name,
        allocatable=_allocatable(node),
        labels=node_labels,
        taints=tuple(Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in node.spec.taints),
        blocked=_blocked(node),
        ready=not _blocked(node),
        gpu_memory=memory or DEFAULT_GPU_MEMORY,
        gpu_memory_known=memory is not None,
        gpu_count=_gpu_count(node_labels),
        mig=node_labels.get(labels.NODE_MIG_STRATEGY, ""),
        mig_enabled=node_labels.get(labels.NODE_MIG_ENABLED) == "true",
        volume_limits=_volume_limits(storage) if storage is not None else {},
    )


def _allocatable(node: Node) -> dict[str, float]:
    """What pods may use of a node, with no more GPUs than a machine can have."""
    offered = amounts({name: milli(value) for name, value in node.status.allocatable.items()})
    return {name: min(amount, MOST_GPUS) if name.endswith("gpu") else amount for name, amount in offered.items()}


def _gpu_count(node_labels: Mapping[str, str]) -> int | None:
    count = whole_number(node_labels.get(labels.NODE_GPU_COUNT, ""))
    return min(count, MOST_GPUS) if count is not None else None


def _volume_limits(storage: CsiNode) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count
        for driver in storage.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _blocked(node: Node) -> Refusal | None:
    if node.metadata.deletion_timestamp is not None:
        return Refusal(Code.NODE_DELETED)
    if node.spec.unschedulable:
        return Refusal(Code.NODE_UNSCHEDULABLE)
    ready = find(node.status.conditions, "Ready")
    if ready is not None and ready.status != "True":
        return Refusal(Code.NODE_NOT_READY)
    for kind in _BLOCKING:
        condition = find(node.status.conditions, kind)
        if condition is not None and condition.status == "True":
            return Refusal(Code.NODE_PRESSURE, kind)
    return None


def _gpu_memory(node_labels: Mapping[str, str]) -> int | None:
    """Memory of each GPU in MiB, rounded down to hundreds; None if the node has no such label."""
    memory = whole_number(node_labels.get(labels.NODE_GPU_MEMORY, ""))
    if not memory:
        return None
    if memory >= _MEBIBYTES_IN_A_TEBIBYTE:
        memory //= 1 << 20
    return memory if memory < 100 else memory // 100 * 100


def queue_spec(queue: Queue, usage: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> QueueSpec:
    """The spec of a queue; Queue objects count memory in megabytes, the scheduler in bytes."""
    shares = queue.spec.resources
    return QueueSpec(
        name=queue.name,
        parent=queue.spec.parent_queue,
        priority=100 if queue.spec.priority is None else queue.spec.priority,
        created=timestamp(queue.metadata.creation_timestamp),
        cpu=_share(shares.cpu if shares else QueueResource(), 1.0),
        memory=_share(shares.memory if shares else QueueResource(), 1e6),
        gpu=_share(shares.gpu if shares else QueueResource(), 1.0),
        usage=usage,
        preempt_min_runtime=_seconds(queue.spec.preempt_min_runtime),
        reclaim_min_runtime=_seconds(queue.spec.reclaim_min_runtime),
    )


def _share(resource: QueueResource, unit: float) -> Share:
    def scaled(value: float) -> float:
        return value if value == -1 else value * unit

    return Share(scaled(resource.quota), scaled(resource.limit), resource.over_quota_weight)


def topology_spec(topology: Topology) -> TopologySpec:
    """A topology's levels with their aliases."""
    return TopologySpec(topology.name, tuple((level.node_label, level.alias) for level in topology.spec.levels))


def job_key(namespace: str, group: str) -> str:
    """The key of a gang: namespace and name of its PodGroup."""
    return f"{namespace}/{group}"


def job_spec(
    group: PodGroup,
    classes: Iterable[PriorityClass],
    topologies: Mapping[str, TopologySpec],
) -> JobSpec:
    """A PodGroup as a gang."""
    priority_class = _class_of(group, classes)
    priority = priority_class.value if priority_class is not None else _DEFAULT_PRIORITY
    spec, annotations = group.spec, group.metadata.annotations
    preemptible = spec.preemptibility == "preemptible" if spec.preemptibility else priority < _NON_PREEMPTIBLE_FROM
    return JobSpec(
        key=job_key(group.namespace, group.name),
        queue=spec.queue,
        priority=priority,
        preemptible=preemptible,
        created=timestamp(group.metadata.creation_timestamp),
        tree=_tree(group, topologies),
        name=group.name,
        namespace=group.namespace,
        uid=group.uid,
        last_start=_moment(annotations.get(labels.LAST_START)),
        last_eviction=_moment(annotations.get(labels.LAST_EVICTION)),
        stale_since=_moment(annotations.get(labels.STALE_SINCE)),
        staleness_grace=_seconds(spec.staleness_grace_period),
        preemption_delay=_seconds(spec.preemption_delay) or 0.0,
        preempts=priority_class is None or priority_class.preemption_policy != "Never",
        replaces=annotations.get(labels.REUSE_RESERVATION, ""),
    )


def _class_of(group: PodGroup, classes: Iterable[PriorityClass]) -> PriorityClass | None:
    """The priority class that the group names, else the global default."""
    default = None
    for priority_class in classes:
        if priority_class.name == group.spec.priority_class_name:
            return priority_class
        if priority_class.global_default:
            default = priority_class
    return default


def _tree(group: PodGroup, topologies: Mapping[str, TopologySpec]) -> GroupSpec:
    spec = group.spec
    root = _constraint(spec.topology_constraint, topologies)
    if not spec.sub_groups:
        leaf = GroupSpec(name=DEFAULT_GROUP, minimum=1 if spec.min_member is None else spec.min_member)
        return GroupSpec(members=(leaf,), constraint=root)
    children: dict[str, list[str]] = {}
    by_name = {subgroup.name: subgroup for subgroup in spec.sub_groups}
    for subgroup in spec.sub_groups:
        children.setdefault(subgroup.parent if subgroup.parent in by_name else "", []).append(subgroup.name)

    def group_spec(name: str) -> GroupSpec:
        subgroup = by_name[name]
        children_names = children.get(name, [])
        constraint = _constraint(subgroup.topology_constraint, topologies)
        if children_names:
            return GroupSpec(
                name, subgroup.min_sub_group, constraint, tuple(group_spec(child) for child in children_names)
            )
        return GroupSpec(name, 1 if subgroup.min_member is None else subgroup.min_member, constraint)

    return GroupSpec("", spec.min_sub_group, root, tuple(group_spec(name) for name in children.get("", [])))


def _constraint(constraint: TopologyConstraint | None, topologies: Mapping[str, TopologySpec]) -> Constraint | None:
    if constraint is None or not (constraint.required_topology_level or constraint.preferred_topology_level):
        return None
    levels = {alias: label for label, alias in _levels(topologies.get(constraint.topology)) if alias}
    return Constraint(
        constraint.topology,
        levels.get(constraint.required_topology_level, constraint.required_topology_level),
        levels.get(constraint.preferred_topology_level, constraint.preferred_topology_level),
    )


def _levels(topology: TopologySpec | None) -> tuple[tuple[str, str], ...]:
    return topology.levels if topology is not None else ()


def amounts(thousandths: Mapping[str, int]) -> dict[str, float]:
    """Milli-cores for cpu, whole units (rounded up) for everything else."""
    return {name: float(value) if name == "cpu" else float(-(-value // 1000)) for name, value in thousandths.items()}


def timestamp(moment: datetime | None) -> float:
    """Seconds since the epoch; 0 if there is no moment."""
    return moment.timestamp() if moment is not None else 0.0


def _moment(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None


def _seconds(text: str) -> float | None:
    try:
        return duration.seconds(text) if text else None
    except ValueError:
        return None


def first_start(pods: Iterable[Pod]) -> float | None:
    """When the first of a gang's pods started; None while none has."""
    moments = [pod.status.start_time for pod in pods if pod.status.start_time is not None]
    return min(moment.timestamp() for moment in moments) if moments else None
