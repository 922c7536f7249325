"""The results of a replay: waiting times, utilisation, fragmentation, evictions, fairness."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from spinney.answers.model import Answer
from spinney.sim.replay.engine import Replayed
from spinney.sim.replay.trace import Trace, TraceJob

# GPUs (or cores) up to which a job counts as of a size.
_SIZES = ((1.0, "≤ 1"), (8.0, "2–8"), (64.0, "9–64"))
_LARGEST = "> 64"


class Waits(Answer, frozen=True):
    """Seconds that some jobs waited."""

    jobs: int
    never_started: int
    mean: float
    median: float
    p90: float
    longest: float


class PolicyResult(Answer, frozen=True):
    """One policy on one trace."""

    policy: str
    waits: Waits
    by_queue: Mapping[str, Waits]
    by_size: Mapping[str, Waits]
    # Seconds from the first arrival to the last end.
    makespan: float
    # Parts of the capacity, over time.
    utilisation: float
    stranded: float
    evictions: int
    gpu_hours_lost: float
    # Jain's index of what queues held, as a part of their fair share: 1 if all queues got the same part.
    fairness: float
    plans: int


class ReplayResult(Answer, frozen=True):
    """All policies on one trace."""

    trace: str
    jobs: int
    nodes: int
    resource: str
    assumed: Sequence[str]
    policies: Sequence[PolicyResult]


def result_of(policy: str, trace: Trace, replayed: Replayed) -> PolicyResult:
    """The numbers of a replay."""
    queues: dict[str, list[TraceJob]] = defaultdict(list)
    sizes: dict[str, list[TraceJob]] = defaultdict(list)
    for job in trace.jobs:
        queues[job.spec.queue].append(job)
        sizes[_size(trace, job)].append(job)
    order = [name for _, name in _SIZES] + [_LARGEST]
    capacity = sum(sample.capacity * sample.seconds for sample in replayed.samples) or 1.0
    return PolicyResult(
        policy=policy,
        waits=_waits(trace.jobs, replayed),
        by_queue={name: _waits(jobs, replayed) for name, jobs in sorted(queues.items())},
        by_size={name: _waits(sizes[name], replayed) for name in order if name in sizes},
        makespan=max(replayed.ended.values(), default=0.0) - min((job.arrival for job in trace.jobs), default=0.0),
        utilisation=sum(sample.used * sample.seconds for sample in replayed.samples) / capacity,
        stranded=sum(sample.stranded * sample.seconds for sample in replayed.samples) / capacity,
        evictions=replayed.evictions,
        gpu_hours_lost=replayed.lost / 3600,
        fairness=_jain([replayed.held[name] / fair for name, fair in replayed.fair.items() if fair > 0]),
        plans=replayed.plans,
    )


def _size(trace: Trace, job: TraceJob) -> str:
    amount = job.gpus if trace.resource else sum(task.request.get("cpu", 0.0) for task in job.tasks) / 1000
    return next((name for most, name in _SIZES if amount <= most), _LARGEST)


def _waits(jobs: Sequence[TraceJob], replayed: Replayed) -> Waits:
    waits = sorted(
        max(replayed.started[job.spec.key] - job.arrival, 0.0) for job in jobs if job.spec.key in replayed.started
    )
    return Waits(
        jobs=len(jobs),
        never_started=len(jobs) - len(waits),
        mean=sum(waits) / len(waits) if waits else 0.0,
        median=_quantile(waits, 0.5),
        p90=_quantile(waits, 0.9),
        longest=waits[-1] if waits else 0.0,
    )


def _quantile(values: Sequence[float], share: float) -> float:
    return values[min(int(share * len(values)), len(values) - 1)] if values else 0.0


def _jain(parts: Sequence[float]) -> float:
    squares = sum(part * part for part in parts)
    return sum(parts) ** 2 / (len(parts) * squares) if squares else 1.0
