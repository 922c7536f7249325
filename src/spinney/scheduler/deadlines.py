"""The next moment at which a rule that looks at the time decides otherwise: worth a cycle though nothing happens."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.scheduler.config import Config
from spinney.scheduler.plugins.minruntime import longest_runtime
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.gangs import Job


def next_deadline(state: State, config: Config, now: float, history: float | None = None) -> float | None:
    """The next moment at which a delay, a grace period, a minimum run time or a preference ends; None for never.

    With a history, which began at a moment, also when a gang has waited long enough for a reservation.
    """
    jobs = list(state.jobs.values())
    waiting = [job for job in jobs if job.pending]
    runtime = longest_runtime(config, state.queue_specs.values()) if waiting else 0.0
    # Most gangs run, and time changes nothing for them; all are looked at after every cycle.
    timed = jobs if runtime else [job for job in jobs if job.pending or job.spec.stale_since is not None]
    moments = [moment for job in timed for moment in _moments(job, config, runtime) if moment > now]
    if history is not None and config.reservations:
        waits = (max(history, job.created, job.last_eviction or 0.0) for job in waiting if not job.set_satisfied(0))
        moments += [since + config.reserve_after for since in waits if since + config.reserve_after > now]
    if waiting:
        moments += [end for _, end in state.departures.current(now)]
    return min(moments, default=None)


def _moments(job: Job, config: Config, runtime: float) -> Iterator[float]:
    spec = job.spec
    if job.pending and spec.preemption_delay > 0:
        yield job.delayed_until()
    grace = config.staleness_grace if spec.staleness_grace is None else spec.staleness_grace
    if spec.stale_since is not None and grace >= 0:
        yield spec.stale_since + grace
    if runtime and any(job.active) and job.last_start is not None:
        yield job.last_start + runtime
