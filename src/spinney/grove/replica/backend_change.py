"""Pods created for another backend than the set has now, as after a change of the default profile."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.grove.model import pod_state


def waits_for_other_backend(pod: Pod, template: Json, backend: str, other_gates: frozenset[str]) -> bool:
    """Whether a pod without a node waits for a scheduler that no longer places its set; nothing is lost with it.

    A pod with a node stays: its scheduler has done its work. A pod's backend is known by its label, or without one by
    its gate. Gates in the user's own template say nothing; nor does schedulerName, which other webhooks may change.
    """
    if pod_state.is_scheduled(pod) or pod_state.is_finished(pod):
        return False
    if labels.SCHEDULER_BACKEND in pod.metadata.labels:
        return pod.metadata.labels[labels.SCHEDULER_BACKEND] != backend
    own = {gate.get("name") for gate in template.get("schedulingGates") or ()}
    return not other_gates.isdisjoint({gate.name for gate in pod.spec.scheduling_gates} - own)
