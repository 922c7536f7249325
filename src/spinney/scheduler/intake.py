"""Wire objects into the descriptions that the state takes: one function per kind, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from spinney.api import duration, labels
from spinney.api.affinity import Affinity, NodeSelectorTerm, PodAffinityTerm
from spinney.api.conditions import find
from spinney.api.core import Node, Pod
from spinney.api.kai import BindRequest, PodGroup, Queue, QueueResource, Topology, TopologyConstraint
from spinney.api.policy import PodDisruptionBudget
from spinney.api.quantity import milli
from spinney.api.requests import pod_requests
from spinney.api.scheduling import PriorityClass
from spinney.api.selector import LabelSelector, Requirement, matches
from spinney.scheduler import status as st
from spinney.scheduler.specs import (
    DEFAULT_GPU_MEMORY,
    DEFAULT_GROUP,
    Constraint,
    Constraints,
    GpuRequest,
    GroupSpec,
    JobSpec,
    Match,
    NodeSpec,
    PodTerm,
    QueueSpec,
    Share,
    SpreadTerm,
    Taint,
    TaskSpec,
    Toleration,
    TopologySpec,
)
from spinney.scheduler.volumes import Reach

_MIG = re.compile(r"mig-\d+g\.\d+gb")
_NON_PREEMPTIBLE_FROM = 100
_DEFAULT_PRIORITY = 50
# A label in MiB above this is a mistake of its writer: the value is in bytes.
_MEBIBYTES_IN_A_TEBIBYTE = 1 << 20
# A pod that was told to go long ago and is still there will not free its node soon.
STUCK_AFTER_SECONDS = 120.0
_BLOCKING = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


def node_spec(node: Node, dra_gpus: int = 0) -> NodeSpec:
    """A node as the scheduler sees it."""
    found = node.metadata.labels
    memory = _gpu_memory(found)
    count = found.get(labels.NODE_GPU_COUNT, "")
    return NodeSpec(
        name=node.name,
        allocatable=_amounts({name: milli(value) for name, value in node.status.allocatable.items()}),
        labels=found,
        taints=tuple(
            Taint(taint.key, taint.value, taint.effect)
            for taint in node.spec.taints
            if taint.effect in ("NoSchedule", "NoExecute")
        ),
        blocked=_blocked(node),
        ready=not _blocked(node),
        gpu_memory=memory or DEFAULT_GPU_MEMORY,
        gpu_memory_known=memory is not None,
        gpu_count=int(count) if count.isdecimal() else None,
        mig=found.get(labels.NODE_MIG_STRATEGY, ""),
        mig_enabled=found.get(labels.NODE_MIG_ENABLED) == "true",
        dra_gpus=dra_gpus,
    )


def _blocked(node: Node) -> str:
    if node.metadata.deletion_timestamp is not None:
        return "node is being deleted"
    if node.spec.unschedulable:
        return "node is unschedulable"
    ready = find(node.status.conditions, "Ready")
    if ready is not None and ready.status != "True":
        return "node is not ready"
    for kind in _BLOCKING:
        found = find(node.status.conditions, kind)
        if found is not None and found.status == "True":
            return f"node has {kind}"
    return ""


def _gpu_memory(found: Mapping[str, str]) -> int | None:
    """Memory of each GPU in MiB, rounded down to hundreds; None where the node does not tell."""
    text = found.get(labels.NODE_GPU_MEMORY, "")
    if not text.isdecimal() or int(text) == 0:
        return None
    memory = int(text)
    if memory >= _MEBIBYTES_IN_A_TEBIBYTE:
        memory //= 1 << 20
    return memory if memory < 100 else memory // 100 * 100


def queue_spec(queue: Queue, usage: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> QueueSpec:
    """A queue with quantities in the core's units: a queue speaks of milli-cores and of megabytes."""
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


def _share(found: QueueResource, unit: float) -> Share:
    def scaled(value: float) -> float:
        return value if value == -1 else value * unit

    return Share(scaled(found.quota), scaled(found.limit), found.over_quota_weight)


def topology_spec(topology: Topology) -> TopologySpec:
    """A topology's levels with their aliases."""
    return TopologySpec(topology.name, tuple((level.node_label, level.alias) for level in topology.spec.levels))


def job_key(namespace: str, group: str) -> str:
    """What a gang is known by: groups of one name in two namespaces are two."""
    return f"{namespace}/{group}"


def job_spec(
    group: PodGroup,
    classes: Iterable[PriorityClass],
    topologies: Mapping[str, TopologySpec],
    evictable: bool = True,
) -> JobSpec:
    """A PodGroup as a gang; one that a disruption budget protects now is not evictable."""
    priority = _priority(group, classes)
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
        evictable=evictable,
    )


def _priority(group: PodGroup, classes: Iterable[PriorityClass]) -> int:
    default = _DEFAULT_PRIORITY
    for found in classes:
        if found.name == group.spec.priority_class_name:
            return found.value
        if found.global_default:
            default = found.value
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

    def grown(name: str) -> GroupSpec:
        found = by_name[name]
        below = children.get(name, [])
        constraint = _constraint(found.topology_constraint, topologies)
        if below:
            return GroupSpec(name, found.min_sub_group, constraint, tuple(grown(child) for child in below))
        return GroupSpec(name, 1 if found.min_member is None else found.min_member, constraint)

    return GroupSpec("", spec.min_sub_group, root, tuple(grown(name) for name in children.get("", [])))


def _constraint(found: TopologyConstraint | None, topologies: Mapping[str, TopologySpec]) -> Constraint | None:
    if found is None or not (found.required_topology_level or found.preferred_topology_level):
        return None
    levels = {alias: label for label, alias in _levels(topologies.get(found.topology)) if alias}
    return Constraint(
        found.topology,
        levels.get(found.required_topology_level, found.required_topology_level),
        levels.get(found.preferred_topology_level, found.preferred_topology_level),
    )


def _levels(topology: TopologySpec | None) -> tuple[tuple[str, str], ...]:
    return topology.levels if topology is not None else ()


def task_spec(
    pod: Pod, request: BindRequest | None, now: datetime, job: str | None = None, reach: Reach | None = None
) -> TaskSpec:
    """A pod as a task; a bind request that is under way puts it on its node already."""
    meta, spec = pod.metadata, pod.spec
    status, node = _status(pod, request, now)
    wanted = pod_requests(spec)
    if job is None:
        group = meta.annotations.get(labels.POD_GROUP, "")
        job = job_key(pod.namespace, group) if group else ""
    order = meta.labels.get(labels.TASK_PRIORITY, "")
    reservation = pod.namespace == labels.RESERVATION_NAMESPACE and labels.GPU_GROUP in meta.labels
    return TaskSpec(
        uid=pod.uid,
        job=job,
        name=pod.name,
        namespace=pod.namespace,
        group=meta.labels.get(labels.SUBGROUP, DEFAULT_GROUP),
        status=status,
        node=node,
        request=_amounts({name: amount for name, amount in wanted.items() if not _is_gpu(name)}),
        gpu=_gpu_request(pod, wanted),
        constraints=replace(constraints_of(pod), volume_nodes=reach.nodes, impossible=reach.impossible)
        if reach is not None
        else constraints_of(pod),
        gpu_groups=_gpu_groups(pod, request),
        created=timestamp(meta.creation_timestamp),
        order=int(order) if order.lstrip("-").isdecimal() else None,
        leader=_leads(meta.labels),
        nominated_node=pod.status.nominated_node_name,
        guaranteed=pod.status.qos_class == "Guaranteed",
        reservation=reservation,
    )


def _status(pod: Pod, request: BindRequest | None, now: datetime) -> tuple[int, str]:
    phase, node = pod.status.phase, pod.spec.node_name
    if phase == "Succeeded":
        return st.SUCCEEDED, node
    if phase == "Failed":
        return st.FAILED, node
    if pod.metadata.deletion_timestamp is not None:
        late = (now - pod.metadata.deletion_timestamp).total_seconds() > STUCK_AFTER_SECONDS
        return (st.STUCK if late and phase == "Running" else st.RELEASING), node
    if phase == "Running":
        return st.RUNNING, node
    if node:
        return st.BOUND, node
    if request is not None:
        return st.BINDING, request.spec.selected_node
    return (st.GATED if pod.spec.scheduling_gates else st.PENDING), ""


def _gpu_request(pod: Pod, wanted: Mapping[str, int]) -> GpuRequest:
    annotations = pod.metadata.annotations
    devices = annotations.get(labels.GPU_FRACTION_DEVICES, "1")
    memory = annotations.get(labels.GPU_MEMORY, "0")
    return GpuRequest(
        whole=sum(amount // 1000 for name, amount in wanted.items() if name.endswith("gpu")),
        portion=_portion(annotations.get(labels.GPU_FRACTION, "")),
        memory=int(memory) if memory.isdecimal() else 0,
        devices=int(devices) if devices.isdecimal() else 1,
        mig=tuple((name, amount // 1000) for name, amount in sorted(wanted.items()) if _MIG.search(name)),
        legacy_mig=any(_MIG.search(name) for name in annotations),
    )


def _portion(text: str) -> float:
    try:
        return round(float(text), 2) if text else 0.0
    except ValueError:
        return 0.0


def _gpu_groups(pod: Pod, request: BindRequest | None) -> tuple[str, ...]:
    if request is not None and request.spec.selected_gpu_groups:
        return request.spec.selected_gpu_groups
    found = pod.metadata.labels
    several = sorted(value for key, value in found.items() if key.startswith(labels.GPU_GROUP_PREFIX))
    return tuple(several) if several else tuple(filter(None, (found.get(labels.GPU_GROUP),)))


def _leads(found: Mapping[str, str]) -> bool:
    """Masters and launchers of training jobs, and heads of Ray clusters, go first."""
    role = found.get(labels.TRAINING_JOB_ROLE) or found.get(labels.TRAINING_REPLICA_TYPE, "")
    return role.lower() in ("master", "launcher") or found.get(labels.RAY_NODE_TYPE) == "head"


def constraints_of(pod: Pod) -> Constraints:
    """Everything about where a pod may run, apart from resources and volumes."""
    spec = pod.spec
    affinity = spec.affinity or Affinity()
    selector = affinity.node_affinity and affinity.node_affinity.required_during_scheduling_ignored_during_execution
    pods = affinity.pod_affinity and affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    apart = (
        affinity.pod_anti_affinity and affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    )
    binding = bool(pods or apart or spec.topology_spread_constraints)
    return Constraints(
        node_selector=tuple(sorted(spec.node_selector.items())),
        node_affinity=tuple(_node_term(term) for term in selector.node_selector_terms) if selector else None,
        tolerations=tuple(
            Toleration(found.key, found.operator or "Equal", found.value, found.effect) for found in spec.tolerations
        ),
        host_ports=tuple(
            (port.host_ip, port.protocol or "TCP", port.host_port)
            for container in spec.containers
            for port in container.ports
            if port.host_port
        ),
        affinity=tuple(_pod_term(term, pod) for term in pods or ()),
        anti_affinity=tuple(_pod_term(term, pod) for term in apart or ()),
        spread=tuple(
            SpreadTerm(found.topology_key, found.max_skew, _matches(found.label_selector), found.min_domains or 1)
            for found in spec.topology_spread_constraints
            if found.when_unsatisfiable == "DoNotSchedule"
        ),
        # Labels and namespace matter only to rules about other pods: pods without any share a class across both.
        labels=tuple(sorted(pod.metadata.labels.items())) if binding else (),
        namespace=pod.namespace if binding else "",
    )


def _node_term(term: NodeSelectorTerm) -> tuple[Match, ...]:
    return tuple(_match(found) for found in (*term.match_expressions, *term.match_fields))


def _match(found: Requirement) -> Match:
    return Match(found.key, found.operator, found.values)


def _pod_term(term: PodAffinityTerm, pod: Pod) -> PodTerm:
    return PodTerm(term.topology_key, _matches(term.label_selector), term.namespaces or (pod.namespace,))


def _matches(selector: LabelSelector | None) -> tuple[Match, ...]:
    if selector is None:
        return (Match("", "Never"),)
    exact = tuple(Match(key, "In", (value,)) for key, value in sorted(selector.match_labels.items()))
    return exact + tuple(_match(found) for found in selector.match_expressions)


def _is_gpu(name: str) -> bool:
    return name.endswith("gpu") or bool(_MIG.search(name))


def _amounts(thousandths: Mapping[str, int]) -> dict[str, float]:
    """Milli-cores for cpu, whole units (rounded up) for everything else."""
    return {name: float(value) if name == "cpu" else float(-(-value // 1000)) for name, value in thousandths.items()}


def timestamp(moment: datetime | None) -> float:
    """Seconds since the epoch; 0 for a moment that is not known."""
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


def resting(spec: TaskSpec) -> TaskSpec:
    """A task that is not to be placed for now: it counts like one behind a gate."""
    return replace(spec, status=st.GATED) if spec.status == st.PENDING else spec


def away_from(spec: TaskSpec, nodes: frozenset[str], known: int) -> TaskSpec:
    """A task that should try other nodes than these; where there are no others, all are tried again."""
    if len(nodes) >= known:
        return spec
    elsewhere = Match("metadata.name", "NotIn", tuple(sorted(nodes)))
    terms = spec.constraints.node_affinity or ((),)
    constraints = replace(spec.constraints, node_affinity=tuple((*term, elsewhere) for term in terms))
    return replace(spec, constraints=constraints)


def leaving(spec: TaskSpec) -> TaskSpec:
    """A task that has been told to go, before its pod shows it."""
    return replace(spec, status=st.RELEASING) if spec.status & st.ACTIVE else spec


def is_protected(pods: Iterable[Pod], budgets: Iterable[PodDisruptionBudget]) -> bool:
    """Whether a disruption budget allows none of the pods that hold a node to be evicted."""
    exhausted = [budget for budget in budgets if budget.status.disruptions_allowed <= 0]
    return any(
        pod.spec.node_name and matches(budget.spec.selector, pod.metadata.labels)
        for budget in exhausted
        for pod in pods
    )


def first_start(pods: Iterable[Pod]) -> float | None:
    """When the first of a gang's pods started; None while none has."""
    moments = [pod.status.start_time for pod in pods if pod.status.start_time is not None]
    return min(moment.timestamp() for moment in moments) if moments else None
