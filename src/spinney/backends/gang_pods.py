"""The pods of a gang, and the state of a pod that matters to its backend."""

from __future__ import annotations

from spinney.api.conditions import find
from spinney.api.labels import PODGANG
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.reasons import FAILED, POD_SCHEDULED, SCHEDULABLE, SCHEDULING_GATED, SUCCEEDED
from spinney.kube.caches.cache import Cache

BY_GANG = "gang"


def gang_names(pod: Pod) -> tuple[str, ...]:
    """The index key of a pod: its gang's namespace and name."""
    name = pod.metadata.labels.get(PODGANG)
    return (f"{pod.namespace}/{name}",) if name else ()


def pods_of(pods: Cache[Pod], gang: PodGang) -> list[Pod]:
    """The living pods of a gang."""
    return [pod for pod in all_pods_of(pods, gang) if alive(pod)]


def all_pods_of(pods: Cache[Pod], gang: PodGang) -> list[Pod]:
    """All pods of a gang, also those that ended."""
    return pods.by(BY_GANG, f"{gang.namespace}/{gang.name}")


def alive(pod: Pod) -> bool:
    """Whether a pod has not ended and is not being deleted."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in (SUCCEEDED, FAILED)


def gated(pod: Pod) -> bool:
    """Whether a pod has a scheduling gate."""
    return bool(pod.spec.scheduling_gates)


def bound(pod: Pod) -> bool:
    """Whether a pod has a node."""
    return bool(pod.spec.node_name)


def judged(pod: Pod) -> bool:
    """Whether a scheduler has written the condition PodScheduled; the API server writes SchedulingGated."""
    scheduled = find(pod.status.conditions, POD_SCHEDULED)
    return scheduled is not None and scheduled.reason != SCHEDULING_GATED


def refusal(pod: Pod) -> str:
    """Why a scheduler has not placed a pod, or why it failed it; empty if it says nothing."""
    if bound(pod) or gated(pod):
        return ""
    if pod.status.phase == FAILED and pod.status.reason:
        return f"{pod.status.reason}: {pod.status.message.strip()}".rstrip(": ")
    scheduled = find(pod.status.conditions, POD_SCHEDULED)
    if scheduled is None or scheduled.status != "False" or scheduled.reason in (SCHEDULING_GATED, SCHEDULABLE):
        return ""
    return scheduled.message or scheduled.reason


def scheduling_state(pod: Pod) -> tuple[bool, bool, bool, bool]:
    """The state of a pod that matters to its gang's backend."""
    return alive(pod), gated(pod), bound(pod), judged(pod)
