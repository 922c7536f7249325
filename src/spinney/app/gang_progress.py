"""How far each gang is on its way from created to running, by the changes of its pods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from spinney.api.core import Pod
from spinney.api.labels import PODGANG, SCHEDULER_BACKEND
from spinney.api.pod_state import is_ready
from spinney.api.podgang import PodGang
from spinney.kube.caches.cache import Change

STAGES = ("created", "gated", "released", "bound", "running")
_JOB = "batch.kubernetes.io/job-name"
_SCHEDULERS = {"kai": "Spinney", "default": "default"}


@dataclass
class Gang:
    """One gang: which of its pods have reached each stage, and when the last one did."""

    name: str
    pods: int
    placed_by: str = "Spinney"
    reached: dict[str, set[str]] = field(default_factory=lambda: {stage: set() for stage in STAGES})
    complete: dict[str, float] = field(default_factory=dict)

    @property
    def stage(self) -> str:
        """The furthest stage that any pod has reached."""
        return next((stage for stage in reversed(STAGES) if self.reached[stage]), "waiting")

    @property
    def done(self) -> bool:
        """Whether every pod runs."""
        return len(self.reached["running"]) >= self.pods

    def see(self, pod: Pod, seconds: float) -> None:
        """Take note of a pod's state."""
        for stage in stages_of(pod):
            self.reached[stage].add(pod.name)
            if len(self.reached[stage]) >= self.pods:
                self.complete.setdefault(stage, seconds)


def stages_of(pod: Pod) -> list[str]:
    """The stages that a pod's state proves it has reached."""
    reached = ["created"]
    if pod.spec.scheduling_gates:
        return [*reached, "gated"]
    reached.append("released")
    if pod.spec.node_name:
        reached.append("bound")
    if pod.status.phase == "Running" and is_ready(pod):
        reached.append("running")
    return reached


class Progress:
    """Follows gangs and Jobs of known sizes through the changes of their pods and PodGangs."""

    def __init__(self, sizes: dict[str, int], elapsed: Callable[[], float]) -> None:
        self.gangs = {name: Gang(name, pods) for name, pods in sizes.items()}
        self._elapsed = elapsed

    @property
    def done(self) -> bool:
        """Whether every pod of every gang runs."""
        return all(gang.done for gang in self.gangs.values())

    def pod(self, change: Change[Pod]) -> None:
        """A pod has changed."""
        pod = change.new
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        gang = self.gangs.get(pod.metadata.labels.get(PODGANG) or pod.metadata.labels.get(_JOB, ""))
        if gang is not None:
            gang.see(pod, self._elapsed())

    def gang(self, change: Change[PodGang]) -> None:
        """A gang has changed: its backend may have been chosen."""
        gang = self.gangs.get(change.object.name)
        if gang is not None:
            backend = change.object.metadata.labels.get(SCHEDULER_BACKEND, "")
            gang.placed_by = _SCHEDULERS.get(backend, backend)
