"""How many of a clique's pods are in which state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spinney.api import labels, pod_state
from spinney.api.core import Pod


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
    active = [pod for pod in pods if not pod_state.is_terminating(pod)]
    scheduled = [pod for pod in active if pod_state.is_scheduled(pod)]
    failed = [pod for pod in scheduled if pod_state.has_failed(pod)]
    return PodCounts(
        replicas=len(active),
        ready=sum(map(pod_state.is_ready, active)),
        scheduled=len(scheduled),
        gated=sum(map(pod_state.is_gated, active)),
        updated=sum(pod.metadata.labels.get(labels.POD_TEMPLATE_HASH) == revision for pod in active),
        failed=len(failed),
        stuck=sum(pod_state.is_stuck(pod) and not pod_state.has_failed(pod) for pod in scheduled),
    )
