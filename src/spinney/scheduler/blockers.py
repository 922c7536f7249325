"""Reasons to wait that no action meets, because the gang never gets as far: no queue to wait in, a delay of its own."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.gangs import Job
from spinney.scheduler.reasons import HeldBack, NoQueue, Problem


def add_blockers(cycle: Cycle) -> None:
    """Note them for every gang that still waits; they stand first."""
    for job in cycle.state.jobs.values():
        if job.pending and (found := list(_blockers(cycle, job))):
            cycle.problems[job.key] = [*found, *cycle.problems.get(job.key, ())]


def _blockers(cycle: Cycle, job: Job) -> Iterator[Problem]:
    if job.queue < 0 or not cycle.queues.leaf(job.queue):
        yield NoQueue(job.spec.queue)
        return
    delay = job.spec.preemption_delay
    until = max(job.created, job.last_eviction or job.created) + delay
    if delay > 0 and cycle.now < until and job.key in cycle.problems:
        yield HeldBack(delay, until)
