"""Jobs that the evicting actions work on, sorted once: those that wait, and those that may be evicted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.share.sorted_jobs import Pool
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.victims.bounds import Freeable


@dataclass(slots=True)
class Pools:
    """Jobs that wait, jobs that may be evicted, and the GPUs that these hold."""

    cycle: Cycle
    waiting: Pool
    running: Pool
    freeable: Freeable
    changes: int

    def update(self, jobs: Iterable[Job]) -> None:
        """Follow decisions that changed only these jobs."""
        self.changes = self.cycle.result.changes
        self.waiting.changed(jobs)
        self.running.changed(jobs)
        for job in jobs:
            self.freeable.changed(job)


class JobPools:
    """The pools of a cycle; rebuilt when decisions have changed other jobs."""

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        self._pools: Pools | None = None

    def current(self) -> Pools:
        """Return the current pools."""
        changes = self.cycle.result.changes
        if self._pools is None or self._pools.changes != changes:
            waiting = Pool(self.cycle, _waits, victims=False)
            running = Pool(self.cycle, _may_be_evicted, victims=True)
            self._pools = Pools(self.cycle, waiting, running, Freeable(self.cycle, running), changes)
        return self._pools


def _waits(cycle: Cycle, job: Job) -> bool:
    return job.pending > 0 and job.queue >= 0 and cycle.queues.leaf(job.queue)


def _may_be_evicted(cycle: Cycle, job: Job) -> bool:
    return job.preemptible and job.queue >= 0 and cycle.queues.leaf(job.queue) and any(job.active)
