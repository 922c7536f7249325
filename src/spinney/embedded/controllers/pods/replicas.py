"""Pods as replicas of a workload: availability, creation from a template, order of deletion, and the plan for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from spinney.api.apps import SetSpec
from spinney.api.conditions import find, true_since
from spinney.api.core import Pod
from spinney.api.meta import Json, Object
from spinney.api.owners import controller_reference
from spinney.api.pod_state import is_active, is_ready
from spinney.api.reasons import POD_READY

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def available_in(pod: Pod, min_ready_seconds: int, now: datetime) -> float | None:
    """Seconds until a ready pod counts as available: 0 if it does, None if it is not ready."""
    ready = find(pod.status.conditions, "Ready")
    if ready is None or ready.status != "True":
        return None
    if not min_ready_seconds or ready.last_transition_time is None:
        return 0.0
    return max(0.0, min_ready_seconds - (now - ready.last_transition_time).total_seconds())


@dataclass
class SetPlan:
    """Pods to create and delete, status fields to change, and after how many seconds to look again."""

    create: list[Json] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)
    status: Json = field(default_factory=dict)
    wake: float | None = None

    def count_available(self, spec: SetSpec, pods: Iterable[Pod], now: datetime) -> int:
        """How many pods are available; wakes when the next ready one becomes so."""
        waits = [available_in(pod, spec.min_ready_seconds, now) for pod in pods]
        self.wake = min((wait for wait in waits if wait), default=None)
        return waits.count(0.0)


def from_template(owner: Object, template: Json) -> Json:
    """A pod of a template, controlled by its owner; the caller gives it a name."""
    metadata = template.get("metadata") or {}
    return {
        "metadata": {
            "namespace": owner.namespace,
            "labels": dict(metadata.get("labels") or {}),
            "annotations": dict(metadata.get("annotations") or {}),
            "finalizers": list(metadata.get("finalizers") or []),
            "ownerReferences": [controller_reference(owner)],
        },
        "spec": dict(template.get("spec") or {}),
    }


def least_wanted_first(pods: list[Pod]) -> list[Pod]:
    """Kubernetes' order of deletion: unbound, unready, low deletion cost, crowded node, young pods first."""
    crowd: dict[str, int] = {}
    for pod in pods:
        if is_active(pod):
            crowd[pod.spec.node_name] = crowd.get(pod.spec.node_name, 0) + 1
    return sorted(pods, key=lambda pod: _deletion_order(pod, crowd.get(pod.spec.node_name, 0)))


def _deletion_order(pod: Pod, crowd: int) -> tuple[object, ...]:
    ready_since = true_since(pod.status.conditions, POD_READY)
    created = pod.metadata.creation_timestamp.timestamp() if pod.metadata.creation_timestamp else 0.0
    restarts = max((status.restart_count for status in pod.status.container_statuses), default=0)
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        is_ready(pod),
        _deletion_cost(pod),
        -crowd,
        -ready_since.timestamp() if ready_since else 0.0,
        -restarts,
        -created,
        pod.name,
    )


def _deletion_cost(pod: Pod) -> int:
    try:
        return int(pod.metadata.annotations.get(_DELETION_COST, "0"))
    except ValueError:
        return 0
