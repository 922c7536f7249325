"""Pods that were made for another backend than the set has now, as after a change of the default profile."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.backends.registry import Choice, Registry
from spinney.grove import podstate


@dataclass(frozen=True)
class Others:
    """What tells the pods of all backends but one: their gates, and the schedulers that place them."""

    gates: frozenset[str]
    schedulers: frozenset[str]

    def made(self, pod: Pod, template: Json) -> bool:
        """Whether a pod without a node waits for a scheduler that is not the set's any more.

        Nothing is lost with it. Pods that have a node stay: their scheduler has done its work. Gates that the user's
        own template names say nothing.
        """
        if podstate.is_scheduled(pod) or podstate.is_finished(pod):
            return False
        own = {gate.get("name") for gate in template.get("schedulingGates") or ()}
        held = {gate.name for gate in pod.spec.scheduling_gates} - own
        return not self.gates.isdisjoint(held) or pod.spec.scheduler_name in self.schedulers


def others(registry: Registry, choice: Choice) -> Others:
    """Every backend but the chosen one."""
    found = [backend for backend in registry if backend.name != choice.backend.name]
    return Others(
        frozenset(backend.gate for backend in found) - {choice.backend.gate},
        frozenset(backend.scheduler_name("") for backend in found) - {choice.scheduler_name},
    )
