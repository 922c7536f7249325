"""How far each gang is on its way from created to running, counted from its pods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spinney.api.conditions import is_true
from spinney.api.core import Pod
from spinney.api.labels import PODGANG, SCHEDULER_BACKEND
from spinney.api.podgang import PodGang

_JOB = "batch.kubernetes.io/job-name"
_SCHEDULERS = {"kai": "Spinney (kai)", "default": "kube-scheduler"}


@dataclass(frozen=True)
class Row:
    """One gang: how many of its pods have got how far. Each number includes those that are further."""

    gang: str
    placed_by: str
    pods: int
    created: int
    gated: int
    released: int
    bound: int
    running: int

    @property
    def stage(self) -> str:
        """In one word, where the gang as a whole is."""
        if self.pods and self.running == self.pods:
            return "running"
        if self.bound:
            return "bound"
        if self.released:
            return "released"
        if self.gated:
            return "gated"
        return "created" if self.created else "waiting"

    @property
    def done(self) -> bool:
        """Whether every pod runs."""
        return self.stage == "running"


def rows(gangs: Iterable[PodGang], pods: Iterable[Pod], wanted: dict[str, int]) -> list[Row]:
    """A row per gang and per Job that has pods or is waited for (`wanted`: its name and number of pods)."""
    members: dict[str, list[Pod]] = {name: [] for name in wanted}
    for pod in pods:
        name = pod.metadata.labels.get(PODGANG) or pod.metadata.labels.get(_JOB)
        if name and pod.metadata.deletion_timestamp is None:
            members.setdefault(name, []).append(pod)
    backends = {gang.name: gang.metadata.labels.get(SCHEDULER_BACKEND, "") for gang in gangs}
    return [_row(name, found, backends, wanted.get(name, len(found))) for name, found in sorted(members.items())]


def _row(name: str, pods: list[Pod], backends: dict[str, str], expected: int) -> Row:
    backend = backends.get(name, "kai")
    gated = sum(1 for pod in pods if pod.spec.scheduling_gates)
    return Row(
        gang=name,
        placed_by=_SCHEDULERS.get(backend, backend),
        pods=max(expected, len(pods)),
        created=len(pods),
        gated=gated,
        released=len(pods) - gated,
        bound=sum(1 for pod in pods if pod.spec.node_name),
        running=sum(1 for pod in pods if pod.status.phase == "Running" and is_true(pod.status.conditions, "Ready")),
    )
