"""A PodClique's status: counts of its pods, and whether it has lost too many of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spinney.api import labels, reasons
from spinney.api.core import Pod
from spinney.api.meta import Condition
from spinney.grove.model import pod_state


@dataclass(frozen=True)
class Counts:
    """The pods of one clique that are not on their way out, by what they do."""

    replicas: int = 0
    ready: int = 0
    scheduled: int = 0
    gated: int = 0
    updated: int = 0
    failed: int = 0
    stuck: int = 0


def count(pods: Sequence[Pod], revision: str) -> Counts:
    """Counts over a clique's pods; `updated` are those made from the revision."""
    staying = [pod for pod in pods if not pod_state.is_leaving(pod)]
    scheduled = [pod for pod in staying if pod_state.is_scheduled(pod)]
    failed = [pod for pod in scheduled if pod_state.has_failed(pod)]
    return Counts(
        replicas=len(staying),
        ready=sum(map(pod_state.is_ready, staying)),
        scheduled=len(scheduled),
        gated=sum(map(pod_state.is_gated, staying)),
        updated=sum(pod.metadata.labels.get(labels.POD_TEMPLATE_HASH) == revision for pod in staying),
        failed=len(failed),
        stuck=sum(pod_state.is_stuck(pod) and not pod_state.has_failed(pod) for pod in scheduled),
    )


def is_breached(counts: Counts, min_available: int) -> bool:
    """Whether fewer pods than the gang needs are scheduled and well; a pod that is still starting is well."""
    return counts.scheduled - counts.failed - counts.stuck < min_available


def scheduled_condition(counts: Counts, min_available: int) -> Condition:
    """Whether enough pods have a node."""
    enough = counts.scheduled >= min_available
    return Condition(
        type=reasons.CLIQUE_SCHEDULED,
        status="True" if enough else "False",
        reason=reasons.SUFFICIENT_SCHEDULED_PODS if enough else reasons.INSUFFICIENT_SCHEDULED_PODS,
        message=f"{counts.scheduled} of at least {min_available} pods are scheduled",
    )


def breach_condition(counts: Counts, min_available: int, updating: bool) -> Condition:
    """Whether the clique has too few pods, and for want of what; while it is updated nobody can say."""
    status, reason = "False", reasons.SUFFICIENT_READY_PODS
    message = f"{counts.scheduled - counts.failed - counts.stuck} of at least {min_available} pods are well"
    if updating:
        status, reason, message = "Unknown", reasons.UPDATE_IN_PROGRESS, "the clique's pods are being replaced"
    elif counts.scheduled < min_available:
        status, reason = "True", reasons.SCHEDULED_BELOW_MIN_AVAILABLE
        message = f"{counts.scheduled} of at least {min_available} pods are scheduled"
    elif is_breached(counts, min_available):
        status, reason = "True", reasons.INSUFFICIENT_READY_PODS
        message += f": {counts.failed} failed, {counts.stuck} started and not ready"
    return Condition(type=reasons.MIN_AVAILABLE_BREACHED, status=status, reason=reason, message=message)
