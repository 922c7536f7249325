"""Reasons to wait that no action meets, because the gang never gets as far: no queue to wait in, a delay of its own."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.problems import HeldBack, LeftAside, NoQueue, Problem


def add_blockers(cycle: Cycle) -> None:
    """Note them for every gang that still waits; they stand first."""
    for job in cycle.state.jobs.values():
        if job.pending and (blockers := list(_blockers(cycle, job))):
            cycle.result.problems[job.key] = [*blockers, *cycle.result.problems.get(job.key, ())]


def _blockers(cycle: Cycle, job: Job) -> Iterator[Problem]:
    if job.key in cycle.aside:
        yield LeftAside(cycle.aside[job.key])
        return
    if job.queue < 0:
        yield NoQueue(job.spec.queue, missing=_missing_above(cycle, job.spec.queue))
        return
    if not cycle.queues.leaf(job.queue):
        yield NoQueue(job.spec.queue, has_children=True)
        return
    delay, until = job.spec.preemption_delay, job.delayed_until()
    if delay > 0 and cycle.now < until and job.key in cycle.result.problems:
        yield HeldBack(delay, until)


def _missing_above(cycle: Cycle, name: str) -> str:
    """The first queue on the way up that is not there; empty if it is the queue itself, or if the way is a ring."""
    specs, seen = cycle.state.queue_specs, {name}
    spec = specs.get(name)
    while spec is not None and spec.parent:
        if spec.parent not in specs:
            return spec.parent
        if spec.parent in seen:
            return ""
        seen.add(spec.parent)
        spec = specs[spec.parent]
    return ""
