"""Pods into tasks: what they ask for, where they may run, and what they are doing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from spinney.api import labels
from spinney.api.affinity import (
    Affinity,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
)
from spinney.api.core import Pod
from spinney.api.kai import BindRequest
from spinney.api.requests import pod_requests
from spinney.api.selector import LabelSelector, Requirement
from spinney.api.volumes import Reach
from spinney.scheduler.intake.cluster_objects import amounts, job_key, timestamp
from spinney.scheduler.state import status as st
from spinney.scheduler.state.specs import (
    DEFAULT_GROUP,
    EVERY_ADDRESS,
    Constraints,
    GpuRequest,
    Match,
    PodTerm,
    SpreadTerm,
    TaskSpec,
)

# MiB of a device: whoever asks for more gets none, and must not overflow the books of a node it was put on.
_LARGEST_MEMORY = 1 << 40
_LARGEST_PORTION = 1000.0
_MIG = re.compile(r"mig-\d+g\.\d+gb")
Namespaces = Callable[[LabelSelector], Iterable[str]]


def no_namespaces(_: LabelSelector) -> Iterable[str]:
    """For those who know of no namespaces."""
    return ()


def task_spec(
    pod: Pod,
    request: BindRequest | None,
    now: datetime,
    *,
    job: str | None = None,
    reach: Reach | None = None,
    select: Namespaces = no_namespaces,
    stuck_after: float = 120.0,
) -> TaskSpec:
    """A pod as a task; a bind request that is under way puts it on its node already.

    A pod that was told to go so many seconds ago and is still there will not free its node soon.
    """
    meta, spec = pod.metadata, pod.spec
    rules = constraints_of(pod, select)
    status, node = _status(pod, request, now, stuck_after)
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
        labels=meta.labels,
        group=meta.labels.get(labels.SUBGROUP, DEFAULT_GROUP),
        status=status,
        node=node,
        request=amounts({name: amount for name, amount in wanted.items() if not _is_gpu(name)}),
        gpu=_gpu_request(pod, wanted),
        constraints=replace(rules, volume_nodes=reach.nodes, impossible=reach.impossible)
        if reach is not None
        else rules,
        gpu_groups=_gpu_groups(pod, request),
        created=timestamp(meta.creation_timestamp),
        order=int(order) if order.lstrip("-").isdecimal() else None,
        leader=_leads(meta.labels),
        nominated_node=pod.status.nominated_node_name,
        guaranteed=pod.status.qos_class == "Guaranteed",
        lifetime=None if spec.active_deadline_seconds is None else float(spec.active_deadline_seconds),
        ends=_ends(pod, now) if node else None,
        reservation=reservation,
    )


def _status(pod: Pod, request: BindRequest | None, now: datetime, stuck_after: float) -> tuple[int, str]:
    phase, node = pod.status.phase, pod.spec.node_name
    if phase == "Succeeded":
        return st.SUCCEEDED, node
    if phase == "Failed":
        return st.FAILED, node
    if pod.metadata.deletion_timestamp is not None:
        late = (now - pod.metadata.deletion_timestamp).total_seconds() > stuck_after
        return (st.STUCK if late and phase == "Running" else st.RELEASING), node
    if phase == "Running":
        return st.RUNNING, node
    if node:
        return st.BOUND, node
    if request is not None:
        return st.BINDING, request.spec.selected_node
    return (st.GATED if pod.spec.scheduling_gates else st.PENDING), ""


def _ends(pod: Pod, now: datetime) -> float | None:
    """When a pod that has a node will be stopped at the latest."""
    if pod.spec.active_deadline_seconds is None:
        return None
    return timestamp(pod.status.start_time or now) + pod.spec.active_deadline_seconds


def _gpu_request(pod: Pod, wanted: Mapping[str, int]) -> GpuRequest:
    annotations = pod.metadata.annotations
    devices = annotations.get(labels.GPU_FRACTION_DEVICES, "1")
    memory = annotations.get(labels.GPU_MEMORY, "0")
    return GpuRequest(
        whole=sum(amount // 1000 for name, amount in wanted.items() if name.endswith("gpu")),
        portion=_portion(annotations.get(labels.GPU_FRACTION, "")),
        memory=min(int(memory), _LARGEST_MEMORY) if memory.isdecimal() else 0,
        devices=int(devices) if devices.isdecimal() else 1,
        mig=tuple((name, amount // 1000) for name, amount in sorted(wanted.items()) if _MIG.search(name)),
        legacy_mig=any(_MIG.search(name) for name in annotations),
    )


def _portion(text: str) -> float:
    try:
        asked = float(text) if text else 0.0
    except ValueError:
        return 0.0
    # More than one fits nowhere; what is no number asks for nothing.
    return round(min(asked, _LARGEST_PORTION), 2) if asked > 0 else 0.0


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


def constraints_of(pod: Pod, select: Namespaces = no_namespaces) -> Constraints:
    """Everything about where a pod may run, apart from resources and volumes."""
    spec = pod.spec
    affinity = spec.affinity or Affinity()
    selector = affinity.node_affinity and affinity.node_affinity.required_during_scheduling_ignored_during_execution
    wishes = (
        affinity.node_affinity.preferred_during_scheduling_ignored_during_execution if affinity.node_affinity else ()
    )
    near, apart = affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()
    return Constraints(
        node_selector=tuple(sorted(spec.node_selector.items())),
        node_affinity=tuple(_node_term(term) for term in selector.node_selector_terms) if selector else None,
        tolerations=tuple(
            Toleration(key=each.key, operator=each.operator or "Equal", value=each.value, effect=each.effect)
            for each in spec.tolerations
        ),
        host_ports=tuple(
            (port.host_ip or EVERY_ADDRESS, port.protocol or "TCP", port.host_port)
            for container in spec.containers
            for port in container.ports
            if port.host_port
        ),
        affinity=tuple(
            _pod_term(term, pod, select) for term in near.required_during_scheduling_ignored_during_execution
        ),
        anti_affinity=tuple(
            _pod_term(term, pod, select) for term in apart.required_during_scheduling_ignored_during_execution
        ),
        preferred=tuple(
            (sign * term.weight, _pod_term(term.pod_affinity_term, pod, select))
            for sign, rules in ((1, near), (-1, apart))
            for term in rules.preferred_during_scheduling_ignored_during_execution
        ),
        preferred_nodes=tuple((wish.weight, _node_term(wish.preference)) for wish in wishes),
        spread=tuple(_spread_term(found, pod) for found in spec.topology_spread_constraints),
    )


def _spread_term(found: TopologySpreadConstraint, pod: Pod) -> SpreadTerm:
    return SpreadTerm(
        found.topology_key,
        found.max_skew,
        (*_matches(found.label_selector), *_like_own(found.match_label_keys, pod, "In")),
        found.min_domains or 1,
        hard=found.when_unsatisfiable == "DoNotSchedule",
        selected_only=found.node_affinity_policy != "Ignore",
        tolerated_only=found.node_taints_policy == "Honor",
    )


def _like_own(keys: Iterable[str], pod: Pod, operator: str) -> tuple[Match, ...]:
    """Requirements made from the pod's own labels; API servers write them into the selector, but not old ones."""
    own = pod.metadata.labels
    return tuple(Match(key, operator, (own[key],)) for key in keys if key in own)


def _node_term(term: NodeSelectorTerm) -> tuple[Match, ...]:
    return tuple(_match(found) for found in (*term.match_expressions, *term.match_fields))


def _match(found: Requirement) -> Match:
    return Match(found.key, found.operator, found.values)


def _pod_term(term: PodAffinityTerm, pod: Pod, select: Namespaces) -> PodTerm:
    namespaces = term.namespaces
    if term.namespace_selector is not None:
        namespaces = (*namespaces, *select(term.namespace_selector))
    elif not namespaces:
        namespaces = (pod.namespace,)
    # A selector that chooses no namespace is about no pod.
    matches = (
        *_matches(term.label_selector),
        *_like_own(term.match_label_keys, pod, "In"),
        *_like_own(term.mismatch_label_keys, pod, "NotIn"),
    )
    return PodTerm(term.topology_key, matches, namespaces or ("",))


def picks_namespaces(pod: Pod) -> bool:
    """Whether a rule of a pod is about namespaces by their labels, which may change."""
    affinity = pod.spec.affinity or Affinity()
    rules = [found for found in (affinity.pod_affinity, affinity.pod_anti_affinity) if found is not None]
    terms = [term for rule in rules for term in rule.required_during_scheduling_ignored_during_execution]
    terms += [
        term.pod_affinity_term for rule in rules for term in rule.preferred_during_scheduling_ignored_during_execution
    ]
    return any(term.namespace_selector is not None for term in terms)


def _matches(selector: LabelSelector | None) -> tuple[Match, ...]:
    if selector is None:
        return (Match("", "Never"),)
    exact = tuple(Match(key, "In", (value,)) for key, value in sorted(selector.match_labels.items()))
    return exact + tuple(_match(found) for found in selector.match_expressions)


def _is_gpu(name: str) -> bool:
    return name.endswith("gpu") or bool(_MIG.search(name))


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
