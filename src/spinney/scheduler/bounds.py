"""Proofs that no set of victims can be enough, made from sums before any victim is looked at."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from spinney.scheduler import status as st
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.filters import freed_gpus
from spinney.scheduler.gangs import Job
from spinney.scheduler.pools import Pool
from spinney.scheduler.tasks import Task, Vector


class Freeable:
    """GPUs that the jobs of a pool hold: by queue and node, and the most that any one job holds."""

    def __init__(self, cycle: Cycle, pool: Pool) -> None:
        self.cycle = cycle
        self.on: dict[int, Vector] = {}
        # An upper bound: it does not shrink when jobs go.
        self.largest: dict[int, float] = {}
        # Whether every job is on one node only.
        self.local = True
        self._parts: dict[str, list[tuple[int, float]]] = {}
        for jobs in pool.sorted.values():
            for job in jobs:
                self._add(job)

    def _add(self, job: Job) -> None:
        parts = [
            (task.node, freed_gpus(self.cycle, task))
            for task in job.all_tasks()
            if task.status & st.ACTIVE and task.node >= 0
        ]
        if not parts:
            return
        self._parts[job.key] = parts
        self.local = self.local and len({row for row, _ in parts}) == 1
        rows = self.on.get(job.queue)
        if rows is None:
            rows = self.on[job.queue] = np.zeros(len(self.cycle.nodes.live))
        for row, gpus in parts:
            rows[row] += gpus
        self.largest[job.queue] = max(self.largest.get(job.queue, 0.0), sum(gpus for _, gpus in parts))

    def of(self, queues: Iterable[int]) -> Vector:
        """What jobs of some queues hold together, on each row."""
        known = [self.on[queue] for queue in queues if queue in self.on]
        return sum(known[1:], known[0]) if known else np.zeros(len(self.cycle.nodes.live))

    def changed(self, job: Job) -> None:
        """Count a job anew."""
        for row, gpus in self._parts.pop(job.key, ()):
            self.on[job.queue][row] -= gpus
        if job.preemptible:
            self._add(job)


def local_room(freeable: Freeable, caps: dict[int, float | None]) -> Vector | None:
    """GPUs that victims of some queues could free on each row; None where some are on several rows."""
    return freeable.of(caps) if freeable.local else None


def hopeless(cycle: Cycle, tasks: list[Task], freeable: Freeable, caps: dict[int, float | None]) -> bool:
    """Whether tasks of whole GPUs cannot fit though every victim of some queues went.

    A cap says how much may be taken from a queue at most: strictly less than the amount; None is any amount.
    """
    sizes = {task.cls.quota for task in tasks}
    size = sizes.pop() if sizes else 0.0
    if sizes or size < 1 or any(task.cls.shared or task.cls.gpu.mig or task.cls.claims for task in tasks):
        return False
    spare, count = cycle.spare.gpus(), len(tasks)
    if cycle.spare.count(size) < count and int(((spare + freeable.of(caps)) // size).sum()) < count:
        return True
    if cycle.state.gpus.on or None in caps.values():
        return False
    most, needed = sum(cap for cap in caps.values() if cap is not None), size * count
    return most <= needed and (missing := needed - float(spare.sum())) > 0 and missing >= most
