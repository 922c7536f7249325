"""Pods that were made for another backend than the set has now, as after a change of the default profile."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.backends.registry import Choice, Registry
from spinney.grove.model import pod_state


@dataclass(frozen=True)
class Others:
    """What tells the pods of all backends but one: their label, or, on pods that have none, a gate."""

    chosen: str
    gates: frozenset[str]

    def made(self, pod: Pod, template: Json) -> bool:
        """Whether a pod without a node waits for a scheduler that is not the set's any more.

        Nothing is lost with it. Pods that have a node stay: their scheduler has done its work. Gates that the user's
        own template names say nothing, and neither does the scheduler's name, which admission webhooks may change.
        """
        if pod_state.is_scheduled(pod) or pod_state.is_finished(pod):
            return False
        if labels.SCHEDULER_BACKEND in pod.metadata.labels:
            return pod.metadata.labels[labels.SCHEDULER_BACKEND] != self.chosen
        own = {gate.get("name") for gate in template.get("schedulingGates") or ()}
        return not self.gates.isdisjoint({gate.name for gate in pod.spec.scheduling_gates} - own)


def others(registry: Registry, choice: Choice) -> Others:
    """Every backend but the chosen one."""
    return Others(choice.backend.name, frozenset(backend.gate for backend in registry) - {choice.backend.gate})
