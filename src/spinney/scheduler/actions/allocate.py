"""Allocate: place pending gangs on resources that are idle or releasing."""

from __future__ import annotations

from spinney.scheduler.config import ALLOCATE
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.place.placer import Placers
from spinney.scheduler.share.job_order import JobOrder
from spinney.scheduler.state import status as st
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.problems import NotReady


def run(cycle: Cycle) -> None:
    """Place gangs in order; a gang whose next tasks were placed is queued again for the rest."""
    jobs: list[Job] = []
    for waiting in cycle.pending_jobs():
        if waiting.ready():
            jobs.append(waiting)
        else:
            cycle.result.problems[waiting.key] = [not_ready(waiting)]
    order = JobOrder.of_jobs(cycle, jobs, cycle.config.queue_depth.get(ALLOCATE))
    while order:
        job = order.pop()
        assert isinstance(job, Job)
        cycle.considering = job
        if place_next(cycle, job) and job.pending:
            order.push(job)


def not_ready(job: Job) -> NotReady:
    """Return how many tasks the incomplete subgroups of a gang lack."""
    lacking = [leaf for leaf, least in enumerate(job.minimums) if job.alive[leaf] - job.gated[leaf] < least]
    gated = sum(job.gated[leaf] for leaf in lacking)
    return NotReady(
        ready=sum(job.alive[leaf] for leaf in lacking) - gated,
        required=sum(job.minimums[leaf] for leaf in lacking),
        gated=gated,
    )


def place_next(cycle: Cycle, job: Job) -> bool:
    """Place a gang's next tasks for good, all of them or none."""
    point = cycle.transaction.checkpoint()
    started = any(task.status & st.CHARGED for task in job.all_tasks())
    if not cycle.get(Placers).real.place_gang(job, cycle.all_rows):
        cycle.transaction.rollback(point)
        return False
    waits = must_wait(job)
    if waits:
        cycle.transaction.delay(job, point)
    cycle.commit(ALLOCATE, point)
    if not waits and not started:
        cycle.transaction.set(job, "last_start", cycle.now)
    return True


def must_wait(job: Job) -> bool:
    """Whether some subgroup cannot start yet, because tasks that it needs wait for resources."""
    for leaf, tasks in enumerate(job.tasks):
        waiting = sum(task.status == st.PIPELINED for task in tasks.values())
        if waiting and job.active[leaf] - waiting < job.minimums[leaf]:
            return True
    return False
