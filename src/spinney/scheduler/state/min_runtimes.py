"""Minimum run times: how long a gang that just started is protected from others."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.queues import Queues
from spinney.scheduler.state.specs import QueueSpec


@dataclass(frozen=True, slots=True)
class MinRuntimes:
    """The defaults for queues that set none, and which queue decides when another one reclaims."""

    reclaim: float = 0.0
    preempt: float = 0.0
    # `lca`: the victim's queue below the lowest common ancestor and those under it; `queue`: the victim's own.
    method: str = "lca"

    def runtime(self, queues: Queues, preemptor: Job, victim: Job) -> float:
        """How long a victim is protected from a gang of its own queue, or of another."""
        if preemptor.queue == victim.queue:
            return self.preempt_runtime(queues, victim.queue)
        return self.reclaim_runtime(queues, preemptor.queue, victim.queue)

    def protected_until(self, queues: Queues, now: float, preemptor: Job, victim: Job) -> float:
        """When a victim that is protected from a gang no longer will be; 0 if it is not."""
        runtime = self.runtime(queues, preemptor, victim)
        return (victim.last_start or 0.0) + runtime if is_young(victim, runtime, now) else 0.0

    def preempt_runtime(self, queues: Queues, victim: int) -> float:
        """How long jobs of a queue are protected from others of the same queue."""
        for queue in queues.path[victim]:
            runtime = queues.specs[queue].preempt_min_runtime
            if runtime is not None:
                return runtime
        return self.preempt

    def reclaim_runtime(self, queues: Queues, reclaimer: int, victim: int) -> float:
        """How long jobs of a queue are protected from those of another."""
        path = queues.path[victim]
        if self.method == "lca":
            top = queues.path[reclaimer][-1]
            if top != path[-1]:
                runtime = queues.specs[path[-1]].reclaim_min_runtime
                return self.reclaim if runtime is None else runtime
            path = path[path.index(queues.levelled(reclaimer, victim)[1]) :]
        for queue in path:
            runtime = queues.specs[queue].reclaim_min_runtime
            if runtime is not None:
                return runtime
        return self.reclaim


def is_young(victim: Job, runtime: float, now: float) -> bool:
    """Whether a job has run for less than a time."""
    return victim.last_start is not None and now < victim.last_start + runtime


def has_min_runtime(spec: QueueSpec) -> bool:
    """Whether a queue sets a minimum run time of its own."""
    return bool(spec.reclaim_min_runtime or spec.preempt_min_runtime)
