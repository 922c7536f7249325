"""The order in which allocate takes gangs, served at the scheduler's `/get-job-order` (opt-in)."""

from __future__ import annotations

from spinney.scheduler.config import ALLOCATE, PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.result import Turn
from spinney.scheduler.share.job_order import JobOrder


def install(cycle: Cycle, _: PluginConfig) -> None:
    """Compute the order before anything is decided."""

    def opened() -> None:
        waiting = [job for job in cycle.pending_jobs() if job.ready()]
        order = JobOrder.of_jobs(cycle, waiting, cycle.config.queue_depth.get(ALLOCATE))
        while order:
            spec = order.pop().job.spec
            cycle.result.turns.append(Turn(spec.key, spec.queue, spec.priority))

    cycle.hooks.opened.append(opened)
