"""Stale gang eviction: evict a gang that stays below its minimum for longer than its grace period."""

from __future__ import annotations

from spinney.scheduler.config import STALE_GANG_EVICTION
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.state import status as st
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.tasks import affordable


def run(cycle: Cycle) -> None:
    """Record since when gangs are stale, and evict those whose grace period is over."""
    for job in _suspects(cycle):
        if not is_stale(job):
            if job.stale_since is not None:
                _since(cycle, job, None)
            continue
        if job.stale_since is None:
            _since(cycle, job, cycle.now)
        grace = cycle.config.staleness_grace if job.spec.staleness_grace is None else job.spec.staleness_grace
        assert job.stale_since is not None
        if grace < 0 or cycle.now - job.stale_since < grace:
            continue
        tasks = [task for task in job.all_tasks() if task.status & st.ACTIVE]
        if not affordable(tasks):
            continue
        point = cycle.transaction.checkpoint()
        for task in tasks:
            cycle.transaction.evict(task)
        cycle.commit(STALE_GANG_EVICTION, point)


def _suspects(cycle: Cycle) -> list[Job]:
    """Jobs that may be stale, or were in the last cycle; on a large cluster, nearly all others run whole."""
    jobs = cycle.state.jobs.values()
    return [job for job in jobs if job.stale_since is not None or not (job.lone and job.used[0] >= job.minimums[0])]


def is_stale(job: Job) -> bool:
    """Whether a gang runs below its minimum and none of its tasks has succeeded."""
    return not job.succeeded and any(job.used) and not job.gang_satisfied()


def _since(cycle: Cycle, job: Job, moment: float | None) -> None:
    cycle.transaction.set(job, "stale_since", moment)
    cycle.result.staleness[job.key] = moment
