"""Convert pods into tasks: requests, constraints and status."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.kai import BindRequest
from spinney.api.numbers import whole_number
from spinney.api.requests import pod_requests
from spinney.api.volumes import Reach
from spinney.scheduler.intake.cluster_objects import amounts, job_key, timestamp
from spinney.scheduler.intake.pod_constraints import Namespaces, constraints_of, no_namespaces
from spinney.scheduler.state import status as st
from spinney.scheduler.state.specs import (
    DEFAULT_GROUP,
    GpuRequest,
    Match,
    TaskSpec,
)

# MiB of a device: whoever asks for more gets none, and must not overflow the books of a node it was put on.
_LARGEST_MEMORY = 1 << 40
_LARGEST_PORTION = 1000.0
_MOST_DEVICES = 1 << 20
_MIG = re.compile(r"mig-\d{1,2}g\.\d+gb")


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
    """The spec of a task; a pending BindRequest counts as placed.

    A pod that is still there `stuck_after` seconds after its deletion does not count as releasing its node.
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
        gpu=gpu_request(pod, wanted),
        constraints=replace(rules, volume_nodes=reach.nodes, impossible=reach.impossible)
        if reach is not None
        else rules,
        gpu_groups=_gpu_groups(pod, request),
        created=timestamp(meta.creation_timestamp),
        order=_order(order),
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
    """When `activeDeadlineSeconds` of a pod with a node ends."""
    if pod.spec.active_deadline_seconds is None:
        return None
    return timestamp(pod.status.start_time or now) + pod.spec.active_deadline_seconds


def gpu_request(pod: Pod, wanted: Mapping[str, int]) -> GpuRequest:
    """What a pod asks of GPUs, by its requests and annotations."""
    annotations = pod.metadata.annotations
    devices = whole_number(annotations.get(labels.GPU_FRACTION_DEVICES, "1"))
    memory = annotations.get(labels.GPU_MEMORY, "0")
    return GpuRequest(
        whole=sum(amount // 1000 for name, amount in wanted.items() if name.endswith("gpu")),
        portion=_portion(annotations.get(labels.GPU_FRACTION, "")),
        memory=min(whole_number(memory) or 0, _LARGEST_MEMORY),
        devices=1 if devices is None else min(devices, _MOST_DEVICES),
        mig=tuple((name, amount // 1000) for name, amount in sorted(wanted.items()) if _MIG.search(name)),
        legacy_mig=any(_MIG.search(name) for name in annotations),
    )


def _order(text: str) -> int | None:
    """The place of a pod among those of its group, by a label; it may be negative."""
    number = whole_number(text.removeprefix("-"))
    return -number if number is not None and text.startswith("-") else number


def _portion(text: str) -> float:
    try:
        portion = float(text) if text else 0.0
    except ValueError:
        return 0.0
    # More than one fits nowhere; what is no number asks for nothing.
    return round(min(portion, _LARGEST_PORTION), 2) if portion > 0 else 0.0


def _gpu_groups(pod: Pod, request: BindRequest | None) -> tuple[str, ...]:
    if request is not None and request.spec.selected_gpu_groups:
        return request.spec.selected_gpu_groups
    pod_labels = pod.metadata.labels
    several = sorted(value for key, value in pod_labels.items() if key.startswith(labels.GPU_GROUP_PREFIX))
    return tuple(several) if several else tuple(filter(None, (pod_labels.get(labels.GPU_GROUP),)))


def _leads(pod_labels: Mapping[str, str]) -> bool:
    """Whether the pod is the master or launcher of a training job, or the head of a Ray cluster."""
    role = pod_labels.get(labels.TRAINING_JOB_ROLE) or pod_labels.get(labels.TRAINING_REPLICA_TYPE, "")
    return role.lower() in ("master", "launcher") or pod_labels.get(labels.RAY_NODE_TYPE) == "head"


def _is_gpu(name: str) -> bool:
    return name.endswith("gpu") or bool(_MIG.search(name))


def in_backoff(spec: TaskSpec) -> TaskSpec:
    """The task during backoff: gated, so that it is not placed."""
    return replace(spec, status=st.GATED) if spec.status == st.PENDING else spec


def avoiding(spec: TaskSpec, nodes: frozenset[str], node_count: int) -> TaskSpec:
    """The task without the nodes that its bind failed on; with all nodes if none is left."""
    if len(nodes) >= node_count:
        return spec
    elsewhere = Match("metadata.name", "NotIn", tuple(sorted(nodes)))
    terms = spec.constraints.node_affinity or ((),)
    constraints = replace(spec.constraints, node_affinity=tuple((*term, elsewhere) for term in terms))
    return replace(spec, constraints=constraints)


def releasing(spec: TaskSpec) -> TaskSpec:
    """The task as releasing, before its pod shows the eviction."""
    return replace(spec, status=st.RELEASING) if spec.status & st.ACTIVE else spec
