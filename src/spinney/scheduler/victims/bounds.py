"""Proofs, from sums alone, that no set of victims frees enough."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.place.free_gpus import FreeGpus, fitting
from spinney.scheduler.share.sorted_jobs import Pool
from spinney.scheduler.state import status as st
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.tasks import Task, Vector
from spinney.scheduler.victims.freed_gpus import freed_gpus


class Freeable:
    """GPUs that the jobs of a pool hold, by queue and node, and the largest job of each queue."""

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
        rows = self.on.get(job.queue)
        if rows is None:
            rows = np.zeros(len(self.cycle.nodes.live))
        parts: list[tuple[int, float]] = []
        total = 0.0
        for task in job.all_tasks():
            row = task.node
            if row >= 0 and task.status & st.ACTIVE:
                gpus = freed_gpus(self.cycle, task)
                parts.append((row, gpus))
                rows[row] += gpus
                total += gpus
                self.local = self.local and row == parts[0][0]
        if not parts:
            return
        self._parts[job.key] = parts
        self.on[job.queue] = rows
        if total > self.largest.get(job.queue, -1.0):
            self.largest[job.queue] = total

    def of(self, queues: Iterable[int]) -> Vector:
        """Return the GPUs that jobs of some queues hold on each row."""
        tables = [self.on[queue] for queue in queues if queue in self.on]
        return sum(tables[1:], tables[0]) if tables else np.zeros(len(self.cycle.nodes.live))

    def changed(self, job: Job) -> None:
        """Count a changed job again."""
        for row, gpus in self._parts.pop(job.key, ()):
            self.on[job.queue][row] -= gpus
        if job.preemptible:
            self._add(job)


def freeable_by_node(freeable: Freeable, caps: dict[int, float | None]) -> Vector | None:
    """Return the GPUs that victims of some queues could free on each row; None if some run on several nodes."""
    return freeable.of(caps) if freeable.local else None


def cannot_fit(cycle: Cycle, tasks: list[Task], freeable: Freeable, caps: dict[int, float | None]) -> bool:
    """Whether tasks of whole GPUs cannot fit though every victim of some queues went.

    A cap says how much may be taken from a queue at most: strictly less than the amount; None is any amount.
    """
    sizes = {0.0 if task.cls.claims else task.cls.unit for task in tasks}
    size = sizes.pop() if len(sizes) == 1 else 0.0
    if not size:
        return False
    free_gpus, count = cycle.get(FreeGpus), len(tasks)
    spare = free_gpus.gpus()
    if free_gpus.count(size) < count and not _holds(spare + freeable.of(caps), size, count):
        return True
    if cycle.state.gpus.on or None in caps.values():
        return False
    most, needed = sum(cap for cap in caps.values() if cap is not None), size * count
    return most <= needed and (missing := needed - float(np.maximum(spare, 0.0).sum())) > 0 and missing >= most


def _holds(room: Vector, size: float, count: int) -> bool:
    """Whether nodes hold a number of tasks of a size."""
    if count == 1:
        return bool(room.max(initial=0.0) >= size)
    return int(fitting(room, size).sum()) >= count
