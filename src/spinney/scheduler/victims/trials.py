"""Trials: the gang that needs room, and victims added until a simulation is worth it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.place.free_gpus import FreeGpus, fitting
from spinney.scheduler.state.gangs import Gang, Job
from spinney.scheduler.state.next_tasks import next_tasks
from spinney.scheduler.state.nodes import Mask, Rows
from spinney.scheduler.state.tasks import Task, Vector, affordable
from spinney.scheduler.victims.filters import GpuFilter, NodeFilter, TopologyFilter
from spinney.scheduler.victims.freed_gpus import NOTHING_FREED, Batch, FreedGpus, freed_gpus
from spinney.scheduler.victims.victim_order import VictimOrder

# Fewer victims than this are looked at one by one.
FEW = 32


class Trial:
    """One scenario: the preemptor, the victims found by smaller trials, and those tried now."""

    __slots__ = ("_tasks", "_victims", "pending", "potential", "preemptor", "recorded")

    def __init__(self, preemptor: Gang, pending: list[Task], recorded: list[Batch], potential: list[Batch]) -> None:
        self.preemptor = preemptor
        self.pending = pending
        self.recorded = recorded
        self.potential = potential
        self._tasks: list[Task] | None = None
        self._victims: list[tuple[Job, list[Task]]] | None = None

    def tasks(self) -> list[Task]:
        """Return every task to evict, once."""
        if self._tasks is None:
            by_key = {task.key: task for batch in (*self.recorded, *self.potential) for task in batch}
            self._tasks = list(by_key.values())
        return self._tasks

    def victims(self) -> list[tuple[Job, list[Task]]]:
        """Return every task to evict, by job."""
        if self._victims is None:
            by_job: dict[str, tuple[Job, list[Task]]] = {}
            for task in self.tasks():
                job = job_of(task)
                by_job.setdefault(job.key, (job, []))[1].append(task)
            self._victims = list(by_job.values())
        return self._victims

    def fingerprint(self) -> tuple[object, ...]:
        """Return a key that is equal for scenarios with equal results."""
        recorded = frozenset(task.key for batch in self.recorded for task in batch)
        potential = frozenset(task.key for batch in self.potential for task in batch)
        return (tuple(task.key for task in self.pending), recorded, potential)


class Search:
    """What a scenario generator works on: the gang or a part of it, and the order of victims."""

    def __init__(
        self, cycle: Cycle, preemptor: Gang, recorded: list[Batch], victims: VictimOrder, feasible: Rows
    ) -> None:
        # GPUs that victims could free on each row; None where some are on several rows.
        self.freeable: Callable[[], Vector | None] = _unknown
        self.cycle = cycle
        self.preemptor = preemptor
        self.pending = next_tasks(preemptor)
        self.recorded = recorded
        self.victims = victims
        self.feasible = feasible
        self.spare = cycle.get(FreeGpus).gpus()
        # GPUs that every row has once the recorded victims are gone.
        self.room: Vector = self.spare.copy() if recorded else self.spare
        for batch in recorded:
            for task in batch:
                if task.node >= 0:
                    self.room[task.node] += freed_gpus(cycle, task)
        self.size = _common_size(self.pending)
        self._known = frozenset(feasible.tolist())
        self._held = int(fitting(self.room[feasible], self.size).sum()) if self.size and self._known else 0

    def one_node_is_not_enough(self) -> bool:
        """Whether evicting all victims of any single node is too little; False if victims run on several nodes."""
        # For a single task the search itself is as fast.
        freeable = self.freeable() if self.size and len(self.pending) > 1 else None
        if freeable is None:
            return False
        best = fitting(self.room + freeable, self.size)
        best[self.feasible] -= fitting(self.room[self.feasible], self.size)
        return self._held + int(best.max(initial=0)) < len(self.pending)

    def too_small(self, potential: list[Batch]) -> bool:
        """Whether nodes with room, and those of the victims, cannot hold the tasks even one by one."""
        size = self.size
        if not size:
            return False
        freed: dict[int, float] = {}
        for batch in potential:
            for task in batch:
                if task.node >= 0:
                    freed[task.node] = freed.get(task.node, 0.0) + freed_gpus(self.cycle, task)
        held = self._held
        for row, gpus in freed.items():
            room = float(self.room[row])
            held += int(max((room + gpus) // size, 0)) - (int(max(room // size, 0)) if row in self._known else 0)
        return held < len(self.pending)

    def flags(self, rows: Rows) -> Mask:
        """Return a flag for every row, set for some: faster to look up than a list."""
        flags = np.zeros(len(self.room), dtype=np.bool_)
        flags[rows] = True
        return flags

    def too_small_together(self, leaving: FreedGpus) -> bool:
        """Whether many victims together free too little."""
        if not self.size:
            return False
        rows, place = np.unique(leaving.rows, return_inverse=True)
        room = self.room[rows]
        counted = np.where(self.flags(self.feasible)[rows], fitting(room, self.size), 0.0)
        gained = fitting(room + np.bincount(place, leaving.gpus, len(rows)), self.size) - counted
        return self._held + int(gained.sum()) < len(self.pending)


def _unknown() -> None:
    return None


def _common_size(pending: list[Task]) -> float:
    """Return the GPUs of one task if all ask for the same number of whole GPUs; else 0."""
    sizes = {task.cls.unit for task in pending}
    return sizes.pop() if len(sizes) == 1 else 0.0


class Accumulator:
    """Add victims step by step, and stop when a simulation is worth it."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.potential: list[Batch] = []
        # Victims so far by job, and jobs with victims on a row.
        self._by_job: dict[str, Batch] = {}
        self._on_row: dict[int, dict[str, None]] = {}
        self._indexed = 0
        # The victims so far in arrays, as far as asked.
        self._leaving = NOTHING_FREED
        self._in_arrays = 0
        self._recorded = {task.key for batch in search.recorded for task in batch}
        cycle = search.cycle
        self._gpus = GpuFilter(cycle, search.pending) if search.pending else None
        nodes = NodeFilter.of(cycle, search.pending, search.feasible)
        filters = [nodes, TopologyFilter.of(cycle, search.preemptor), self._gpus]
        self._filters = [filter_ for filter_ in filters if filter_ is not None]
        for filter_ in self._filters:
            for batch in search.recorded:
                filter_.add(batch)

    def steps(self) -> Iterator[None]:
        """Yield at every set of victims that passes the filters, the empty set first."""
        if not self.search.pending:
            return
        if self._valid():
            yield
        for step in self.search.victims.steps(self._recorded, self._skip_ahead()):
            if step:
                self._add(step)
            if self._valid():
                yield

    def _skip_ahead(self) -> int:
        """Add, at one stroke, the victims that a smaller trial has shown and that are surely not enough.

        Where in the line to go on from there.
        """
        line = self.search.victims
        numbers = line.known(self._recorded)
        if self._gpus is None or len(numbers) < FEW:
            return 0
        leaving = line.leaving(numbers)
        count = self._gpus.add_short(leaving, len(numbers))
        if not count:
            return 0
        self.potential += line.made(numbers[:count])
        self._leaving, self._in_arrays = leaving.only(list(range(count))), count
        for filter_ in self._filters:
            if filter_ is not self._gpus:
                for step in self.potential:
                    filter_.add(step)
        return numbers[count - 1] + 1

    def _valid(self) -> bool:
        for filter_ in self._filters:  # noqa: SIM110  # asked for every victim: a generator would cost more than the answer
            if not filter_.possible():
                return False
        return True

    def _add(self, step: Batch) -> None:
        self.potential.append(step)
        for filter_ in self._filters:
            filter_.add(step)

    def leaving(self) -> FreedGpus:
        """Return all victims so far, in arrays."""
        if self._in_arrays < len(self.potential):
            more = FreedGpus.of(self.search.cycle, self.potential[self._in_arrays :], self._in_arrays)
            self._leaving, self._in_arrays = self._leaving.followed_by(more), len(self.potential)
        return self._leaving

    def jobs_on(self, row: int) -> list[Batch]:
        """Return all victims so far of jobs that have a victim on a row."""
        for step in self.potential[self._indexed :]:
            job = job_of(step[0]).key
            self._by_job.setdefault(job, []).extend(step)
            for task in step:
                self._on_row.setdefault(task.node, {})[job] = None
        self._indexed = len(self.potential)
        return self.within_budgets([list(self._by_job[job]) for job in self._on_row.get(row, ())])

    def within_budgets(self, batches: list[Batch]) -> list[Batch]:
        """Return the batches, in order, that disruption budgets allow beside the recorded ones."""
        if not self.search.cycle.state.budgets:
            return batches
        going = [task for batch in self.search.recorded for task in batch]
        allowed: list[Batch] = []
        for batch in batches:
            if affordable([*going, *batch]):
                going += batch
                allowed.append(batch)
        return allowed

    def trial(self, potential: list[Batch]) -> Trial:
        """Return a scenario with some of the victims so far."""
        return Trial(self.search.preemptor, self.search.pending, self.search.recorded, potential)


def job_of(task: Task) -> Job:
    """Return the job of a victim: only tasks of jobs are evicted."""
    assert task.job is not None
    return task.job
