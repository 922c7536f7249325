"""Why nobody is evicted for a waiting gang: pods of lower priority and what protects them, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.api.numbers import number
from spinney.scheduler.plan import Plan
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.problems import NoDomain, NoRoom, Problem
from spinney.scheduler.state.specs import UNLIMITED
from spinney.scheduler.state.tasks import CPU, GPU, Task
from spinney.scheduler.why.advice import eviction_helps
from spinney.scheduler.why.texts import UNITS, moment


@dataclass(frozen=True, slots=True)
class Protection:
    """Pods of lower priority in a gang's queue, and what its queue may reclaim from others."""

    # Pods in its queue that have a place, and of these: of lower priority; not preemptible; kept by a budget.
    running: int
    lower: int
    fixed: int
    budgeted: int
    # Pods of lower priority in its queue, and pods of other queues, that have not run for their minimal time yet.
    young: int
    young_elsewhere: int
    # When the last of these will have; 0 without any.
    until: float
    # Whether the gang's priority class lets it push anybody out.
    preempts: bool
    # What decides between queues: its queue's fair share, what it would hold, and what others have beyond theirs.
    resource: int
    fair: float
    would_hold: float
    borrowed: float

    def sentences(self) -> list[str]:
        """The numbers in sentences."""
        _, unit, size = UNITS[self.resource]
        lines = [self._own_queue()] if self.running else []
        if self.would_hold > self.fair:
            lines.append(
                f"Its queue would hold {number(self.would_hold / size)} {unit}, more than its fair share of "
                f"{number(self.fair / size)}: it takes nothing from other queues."
            )
        else:
            lines.append(
                f"Its queue is within its fair share of {number(self.fair / size)} {unit}; other queues hold "
                f"{number(self.borrowed / size)} beyond theirs."
            )
            if self.young_elsewhere:
                lines.append(
                    f"{self.young_elsewhere} pods of other queues have not run for their minimal time yet; "
                    f"the last of them will have at {moment(self.until)}."
                )
        return lines

    def _own_queue(self) -> str:
        if not self.preempts:
            return "Its priority class pushes nobody out (preemptionPolicy is Never)."
        if not self.lower:
            return f"None of the {self.running} pods that run in its queue has a lower priority."
        return (
            f"{self.lower} of {self.running} pods that run in its queue have a lower priority; of these {self.fixed} "
            f"may not be evicted and {self.budgeted} are kept by disruption budgets."
            + (
                f" {self.young} have not run for their minimal time yet, until {moment(self.until)}."
                if self.young
                else ""
            )
        )


def protection(state: State, plan: Plan, job: Job, problems: tuple[Problem, ...]) -> Protection | None:
    """What protects others from eviction; None for a gang that waits for something else, or has no queue."""
    if job.queue < 0 or not problems or not _would_help(problems[0]):
        return None
    pending = [task.cls.triple for task in job.all_tasks() if task.status == st.PENDING]
    resource = GPU if any(triple[GPU] for triple in pending) else CPU
    running = lower = fixed = budgeted = 0
    for other in state.jobs.values():
        if other.queue != job.queue or other is job:
            continue
        present = _present(other)
        running += len(present)
        if other.priority < job.priority:
            lower += len(present)
            fixed += len(present) if not other.preemptible else 0
            budgeted += sum(other.preemptible and task.budget is not None and task.budget.left <= 0 for task in present)
    fair = plan.fair_share.get(job.spec.queue, (0.0, 0.0, 0.0))[resource]
    would_hold = state.charged[job.queue][resource] + sum(triple[resource] for triple in pending)
    borrowed = _borrowed(state, plan, job, resource)
    own = (running, lower, fixed, budgeted, *_young(state, plan, job), job.spec.preempts)
    return Protection(*own, resource, fair, would_hold, borrowed)


def _young(state: State, plan: Plan, job: Job) -> tuple[int, int, float]:
    """The number of pods in their minimum run time, in the gang's queue and elsewhere, and when the last one ends."""
    here = elsewhere = 0
    until = 0.0
    if plan.min_runtimes is None:
        return here, elsewhere, until
    for other in state.jobs.values():
        same_queue = other.queue == job.queue
        if other is job or other.queue < 0 or not other.preemptible or (same_queue and other.priority >= job.priority):
            continue
        if safe := plan.min_runtimes.protected_until(state.queues, plan.now, job, other):
            until = max(until, safe)
            if same_queue:
                here += len(_present(other))
            else:
                elsewhere += len(_present(other))
    return here, elsewhere, until


def _present(job: Job) -> list[Task]:
    return [task for task in job.all_tasks() if task.status & st.ACTIVE]


def _would_help(problem: Problem) -> bool:
    """Whether evictions could solve a problem."""
    match problem:
        case NoRoom():
            return eviction_helps(problem)
        case NoDomain():
            return not problem.domain or problem.most >= problem.tasks
        case _:
            return False


def _borrowed(state: State, plan: Plan, job: Job, resource: int) -> float:
    """What other leaf queues hold beyond quota and fair share."""
    queues, total = state.queues, 0.0
    for name, row in queues.index.items():
        quota = queues.quota[row][resource]
        if row != job.queue and queues.leaf(row) and quota != UNLIMITED and name in plan.fair_share:
            total += max(0.0, state.charged[row][resource] - max(quota, plan.fair_share[name][resource]))
    return total
