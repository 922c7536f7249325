"""What a pod's status says, read the same way by everybody."""

from __future__ import annotations

from spinney.api import labels, reasons
from spinney.api.conditions import is_true
from spinney.api.numbers import whole_number
from spinney.api.pod import Pod


def is_finished(pod: Pod) -> bool:
    """Whether the pod has succeeded or failed."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_terminating(pod: Pod) -> bool:
    """Whether the pod's deletion has begun."""
    return pod.metadata.deletion_timestamp is not None


def is_active(pod: Pod) -> bool:
    """Whether the pod is neither finished nor terminating."""
    return not is_finished(pod) and not is_terminating(pod)


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


def index(pod: Pod) -> int:
    """A pod's ordinal inside its clique; -1 for a pod without one."""
    number = whole_number(pod.metadata.labels.get(labels.POD_INDEX, ""))
    return -1 if number is None else number
