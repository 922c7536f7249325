"""Jobs that an action skips: until something is decided, they fail like one that already failed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.next_tasks import next_tasks
from spinney.scheduler.state.tasks import Task, Vector


class FailedJobs:
    """Jobs without a solution, by what makes others alike."""

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        self._decided = len(cycle.result.decided)
        self._kinds: set[object] = set()
        # Requests of failed jobs, largest first, by everything but size.
        self._sizes: dict[object, list[Vector]] = {}

    def add(self, job: Job) -> None:
        """Record a job without a solution."""
        self._forget_if_stale()
        self._kinds.add(_kind(self.cycle, job))
        if self.cycle.config.skip_alike and not any(job.active):
            tasks = next_tasks(job)
            self._sizes.setdefault(_signature(self.cycle, job, tasks), []).append(_sorted(tasks))

    def covers(self, job: Job) -> bool:
        """Whether a job asks for the same as a failed one, or for more."""
        self._forget_if_stale()
        if not self._kinds:
            return False
        if _kind(self.cycle, job) in self._kinds:
            return True
        if not self._sizes or any(job.active):
            return False
        tasks = next_tasks(job)
        failed = self._sizes.get(_signature(self.cycle, job, tasks), ())
        return any(_at_least(_sorted(tasks), least) for least in failed)

    def _forget_if_stale(self) -> None:
        if self._decided != len(self.cycle.result.decided):
            self._decided = len(self.cycle.result.decided)
            self._kinds.clear()
            self._sizes.clear()


def _kind(cycle: Cycle, job: Job) -> object:
    """Return a key that is equal for jobs with equal chances; a job that runs in part has its own."""
    if any(job.active):
        return job.key
    tasks = tuple((task.cls.id, task.podset, cycle.placement_key(task)) for task in next_tasks(job))
    return (job.queue, job.priority, job.preemptible, id(job.tree), tasks)


def _signature(cycle: Cycle, job: Job, tasks: Sequence[Task]) -> object:
    """Return a key that is equal for jobs which differ at most in the number and size of tasks."""
    rules = frozenset(
        (task.cls.constraints, cycle.placement_key(task), task.cls.id if task.cls.shared or task.cls.claims else -1)
        for task in tasks
    )
    tree = job.tree
    # Gangs with subgroups are compared only if they have the same tree.
    shape: object = tree.podsets[0].constraint, tree.sets[0].constraint
    return (job.queue, job.priority, job.preemptible, shape if tree.simple else id(tree), rules)


def _sorted(tasks: Sequence[Task]) -> Vector:
    requests = np.array([task.cls.request for task in tasks]).reshape(len(tasks), -1)
    order = np.lexsort(requests.T[::-1])[::-1]
    ordered: Vector = requests[order]
    return ordered


def _at_least(larger: Vector, smaller: Vector) -> bool:
    """Whether the smaller job's requests can be matched one-to-one to equal or larger requests of the other."""
    return len(larger) >= len(smaller) and bool((larger[: len(smaller)] >= smaller).all())
