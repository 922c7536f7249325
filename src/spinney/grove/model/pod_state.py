"""What a pod's status says about it, and counts over a clique's pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spinney.api import labels, reasons
from spinney.api.conditions import is_true
from spinney.api.core import Pod
from spinney.api.numbers import whole_number


def index(pod: Pod) -> int:
    """The pod's ordinal inside its clique; -1 for a pod without one."""
    number = whole_number(pod.metadata.labels.get(labels.POD_INDEX, ""))
    return -1 if number is None else number


def is_terminating(pod: Pod) -> bool:
    """Whether the pod's deletion has begun."""
    return pod.metadata.deletion_timestamp is not None


def is_finished(pod: Pod) -> bool:
    """Whether the pod has succeeded or failed."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_scheduled(pod: Pod) -> bool:
    """Whether the pod has a node."""
    return bool(pod.spec.node_name) or is_true(pod.status.conditions, reasons.POD_SCHEDULED)


def is_ready(pod: Pod) -> bool:
    """Whether the pod is ready."""
    return is_true(pod.status.conditions, reasons.POD_READY)


def is_gated(pod: Pod) -> bool:
    """Whether the pod has any scheduling gate."""
    return bool(pod.spec.scheduling_gates)


def has_failed(pod: Pod) -> bool:
    """Whether a container of a pod that is not ready has ended with an error."""
    if is_ready(pod):
        return False
    terminations = (
        state.terminated
        for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)
        for state in (status.state, status.last_state)
    )
    return pod.status.phase == "Failed" or any(end is not None and end.exit_code != 0 for end in terminations)


def is_stuck(pod: Pod) -> bool:
    """Whether the pod has started and is not ready."""
    return not is_ready(pod) and any(status.started for status in pod.status.container_statuses)


def is_disrupted(pod: Pod) -> bool:
    """Whether the pod is about to be taken away (preemption, eviction, a failing node)."""
    return is_true(pod.status.conditions, reasons.DISRUPTION_TARGET)


@dataclass(frozen=True)
class PodCounts:
    """The pods of one clique that are not terminating, by state."""

    replicas: int = 0
    ready: int = 0
    scheduled: int = 0
    gated: int = 0
    updated: int = 0
    failed: int = 0
    stuck: int = 0

    @property
    def healthy(self) -> int:
        """Pods with a node that neither failed nor are stuck; a pod that is still starting is healthy."""
        return self.scheduled - self.failed - self.stuck

    def is_breached(self, min_available: int) -> bool:
        """Whether fewer pods than the gang needs are scheduled and healthy."""
        return self.healthy < min_available


def count_pods(pods: Sequence[Pod], revision: str) -> PodCounts:
    """Count a clique's pods; `updated` are those with the revision's template hash."""
    active = [pod for pod in pods if not is_terminating(pod)]
    scheduled = [pod for pod in active if is_scheduled(pod)]
    failed = [pod for pod in scheduled if has_failed(pod)]
    return PodCounts(
        replicas=len(active),
        ready=sum(map(is_ready, active)),
        scheduled=len(scheduled),
        gated=sum(map(is_gated, active)),
        updated=sum(pod.metadata.labels.get(labels.POD_TEMPLATE_HASH) == revision for pod in active),
        failed=len(failed),
        stuck=sum(is_stuck(pod) and not has_failed(pod) for pod in scheduled),
    )
