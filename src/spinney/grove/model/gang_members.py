"""The pod groups of a gang with their pods: whether they are created, scheduled and ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spinney.api import pod_state, reasons
from spinney.api.conditions import find
from spinney.api.core import Pod
from spinney.api.podgang import PodGang


@dataclass(frozen=True)
class Member:
    """One pod group of a gang: the minimum it needs, the pods it should have, and the pods it has."""

    name: str
    minimum: int
    wanted: int
    pods: Sequence[Pod]

    @property
    def active(self) -> list[Pod]:
        """Its pods that are not terminating."""
        return [pod for pod in self.pods if not pod_state.is_terminating(pod)]

    @property
    def scheduled(self) -> int:
        """How many pods have a node."""
        return sum(map(pod_state.is_scheduled, self.active))

    @property
    def ready(self) -> int:
        """How many pods are ready."""
        return sum(map(pod_state.is_ready, self.active))

    @property
    def healthy(self) -> int:
        """How many pods have a node and neither failed nor are stuck."""
        return sum(
            pod_state.is_scheduled(pod) and not pod_state.has_failed(pod) and not pod_state.is_stuck(pod)
            for pod in self.active
        )


def is_complete(gang: PodGang, members: Sequence[Member]) -> bool:
    """Whether every pod of the gang exists and is referenced."""
    referenced = {reference.name for group in gang.spec.podgroups for reference in group.pod_references}
    return all(
        len(member.active) >= member.wanted and all(pod.name in referenced for pod in member.active)
        for member in members
    )


def is_scheduled(members: Sequence[Member]) -> bool:
    """Whether every pod group has its minimum on nodes."""
    return all(member.scheduled >= member.minimum for member in members)


def is_ready(members: Sequence[Member]) -> bool:
    """Whether every pod group has its minimum ready."""
    return all(member.ready >= member.minimum for member in members)


def is_backend_ready(gang: PodGang) -> bool:
    """Whether the backend has set BackendReady for this generation of the gang."""
    condition = find(gang.status.conditions, reasons.BACKEND_READY)
    if condition is None or condition.status != "True":
        return False
    return condition.observed_generation == gang.metadata.generation


def references(gang: PodGang) -> Mapping[str, tuple[str, ...]]:
    """The names of the pods that a stored gang references, by pod group."""
    return {group.name: tuple(reference.name for reference in group.pod_references) for group in gang.spec.podgroups}
