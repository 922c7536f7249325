"""Scaling inside a clique: which ordinals are free, and which pods go first."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api import labels
from spinney.api.core import Pod
from spinney.grove.model import pod_state

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def free_indices(pods: Iterable[Pod], count: int) -> list[int]:
    """The lowest ordinals that no pod has."""
    taken = {pod_state.index(pod) for pod in pods}
    free: list[int] = []
    candidate = 0
    while len(free) < count:
        if candidate not in taken:
            free.append(candidate)
        candidate += 1
    return free


def surplus(pods: Iterable[Pod], wanted: int, revision: str) -> list[Pod]:
    """The pods that go on scale-in.

    Unassigned before assigned, Pending before Unknown before Running, not ready before ready, outdated before current,
    newest first; among equals the highest ordinal.
    """
    candidates = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    candidates.sort(key=lambda pod: _deletion_order(pod, revision))
    return candidates[: max(0, len(candidates) - wanted)]


def _deletion_order(pod: Pod, revision: str) -> tuple[bool, int, bool, bool, float, int]:
    created = pod.metadata.creation_timestamp
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        pod_state.is_ready(pod),
        pod.metadata.labels.get(labels.POD_TEMPLATE_HASH) == revision,
        -(created.timestamp() if created else 0.0),
        -pod_state.index(pod),
    )
