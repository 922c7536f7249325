"""The search for victims: trials place more and more of a gang's tasks, until all are placed or none works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from spinney.scheduler.bisection import smallest
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Scenario
from spinney.scheduler.place.free_gpus import FreeGpus
from spinney.scheduler.place.placer import Placer
from spinney.scheduler.result import Attempt
from spinney.scheduler.share.job_order import JobOrder
from spinney.scheduler.share.sorted_jobs import Pool
from spinney.scheduler.state import status as st
from spinney.scheduler.state.gangs import Gang, Job
from spinney.scheduler.state.next_tasks import next_tasks, trial_part
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.tasks import Task, Vector
from spinney.scheduler.state.transaction import Checkpoint
from spinney.scheduler.victims.freed_gpus import Batch
from spinney.scheduler.victims.scenarios import every_choice
from spinney.scheduler.victims.trial_order import TrialOrder
from spinney.scheduler.victims.trials import Search, Trial
from spinney.scheduler.victims.victim_order import VictimOrder

Check = Callable[[Scenario], bool]
PlaceAgain = Callable[["Solver", Trial, Rows], bool]
# How a search ends, as upstream's metrics call it.
SOLVED, UNSOLVED, GIVEN_UP = "solved", "generators_exhausted", "deadline_exhausted"
# Statuses of victims that did not stay on their node.
GONE = (st.RELEASING, st.PIPELINED)


@dataclass(slots=True)
class Solver:
    """Search victims for one job; on success the moves are made and the caller commits them."""

    cycle: Cycle
    placer: Placer
    job: Job
    check: Check
    victim_order: Callable[[], JobOrder]
    waiting: Pool
    # How a trial of every choice places everyone again, one way after the other: see the methods below.
    place_again: tuple[PlaceAgain, ...]
    failed: set[tuple[object, ...]] = field(default_factory=set)
    steps: int = 0
    # False when the search stopped at its limit of steps.
    complete: bool = True
    line: VictimOrder | None = None
    attempts: list[Attempt] = field(default_factory=list)
    freeable: Callable[[], Vector | None] | None = None

    def solve(self) -> Checkpoint | None:
        """Make room for the job's next tasks; return the checkpoint before the moves, or None."""
        tasks = next_tasks(self.job)
        before = sum(self.job.used)
        point = self.cycle.transaction.checkpoint()
        if not tasks:
            return None
        feasible = feasible_rows(self.cycle, self.job)
        for name, generator in self.cycle.hooks.generators:
            start = self.cycle.stopwatch.clock()
            solved = self._solve_with(generator, tasks, feasible)
            result = SOLVED if solved else self.failure()
            self.attempts.append(Attempt(name, self.cycle.stopwatch.clock() - start, result))
            if not solved:
                continue
            if self.job.gang_satisfied() and sum(self.job.used) > before:
                return point
            self.cycle.transaction.rollback(point)
            return None
        return point if self._solve_exactly(tasks, feasible) else None

    def failure(self) -> str:
        """Return how a failed search ended."""
        return UNSOLVED if self.complete else GIVEN_UP

    def _solve_exactly(self, tasks: list[Task], feasible: Rows) -> bool:
        """Try every choice of victims if there are few, which finds what the generators overlook."""
        search = Search(self.cycle, self.job, [], self._victims(), feasible)
        for trial, way in ((trial, way) for trial in every_choice(search) for way in self.place_again):
            if self.steps >= self.cycle.config.search_steps:
                self.complete = False
                return False
            self.steps += 1
            if self._simulate(trial, feasible, partial(way, self)) is not None:
                return True
        return False

    def _solve_with(self, generator: Callable[[Search], Any], tasks: list[Task], feasible: Rows) -> bool:
        recorded: list[Batch] = []
        transaction = self.cycle.transaction

        def fails(count: int) -> bool:
            nonlocal recorded
            point = transaction.checkpoint()
            solution = self._probe(generator, tasks[:count], recorded, feasible)
            if solution is None:
                return True
            recorded, exact = solution
            if count < len(tasks) or not exact:
                transaction.rollback(point)
            return False

        point = transaction.checkpoint()
        if smallest(fails, len(tasks)) == 1:
            return False
        if transaction.checkpoint() != point:
            # The probe of all tasks evicted nobody in vain: it is the solution.
            return True
        return self._probe(generator, tasks, recorded, feasible) is not None

    def _probe(
        self, generator: Callable[[Search], Any], tasks: list[Task], recorded: list[Batch], feasible: Rows
    ) -> tuple[list[Batch], bool] | None:
        """Find victims for the first tasks; return the batches that moved and whether all victims did, or None."""
        cycle = self.cycle
        part = trial_part(self.job, tasks)
        open_rows = with_rows(cycle, feasible, [task for batch in recorded for task in batch])
        search = Search(cycle, part, recorded, self._victims(), open_rows)
        if self.freeable is not None:
            search.freeable = self.freeable
        for trial in generator(search):
            if self.steps >= cycle.config.search_steps:
                self.complete = False
                return None
            mark = trial.fingerprint()
            if mark in self.failed:
                continue
            self.steps += 1
            solution = self._simulate(trial, open_rows, self.in_order)
            if solution is not None:
                return solution
            self.failed.add(mark)
        return None

    def _victims(self) -> VictimOrder:
        if self.line is None:
            self.line = VictimOrder(self.victim_order)
        return self.line

    def _simulate(
        self, trial: Trial, feasible: Rows, place_again: Callable[[Trial, Rows], bool]
    ) -> tuple[list[Batch], bool] | None:
        """Evict the victims, then place everyone again; return the batches that moved, or None."""
        victims = trial.tasks()
        if not victims:
            return None
        cycle = self.cycle
        point = cycle.transaction.checkpoint()
        rows = self.placer.open_rows = with_rows(cycle, feasible, victims)
        cycle.transaction.evict_all(victims)
        if not place_again(trial, rows) or overspent(victims) or not self.check(trial):
            cycle.transaction.rollback(point)
            return None
        moved = [batch for batch in (*trial.recorded, *trial.potential) if _moved(batch)]
        return moved, all(task.status in GONE for task in victims)

    def in_order(self, trial: Trial, rows: Rows) -> bool:
        """Place the preemptor and, where it still fits, each victim, in the order of all jobs that wait."""
        return self._in_order(trial, rows, [job for job, _ in trial.victims()])

    def _in_order(self, trial: Trial, rows: Rows, victims: list[Job]) -> bool:
        preemptor = trial.preemptor
        some: dict[str, Gang] = {job.key: job for job in victims}
        some[preemptor.job.key] = preemptor
        for gang in TrialOrder(self.waiting, some):
            if gang is not preemptor:
                self._place_victim(gang, rows)
            elif not self.placer.place_gang(preemptor, rows):
                return False
        return True

    def gang_first(self, trial: Trial, rows: Rows) -> bool:
        """Place the preemptor first, then its victims in order; the check decides whether victims may lose."""
        if not self.placer.place_gang(trial.preemptor, rows):
            return False
        for gang in TrialOrder(self.waiting, {job.key: job for job, _ in trial.victims()}):
            self._place_victim(gang, rows)
        return True

    def some_moved_before(self, trial: Trial, rows: Rows) -> bool:
        """Place victims that fit beside the preemptor first, then everyone else in order."""
        point = self.cycle.transaction.checkpoint()
        if not self.gang_first(trial, rows):
            return False
        places = [(task, task.node) for task in trial.tasks() if task.status != st.RELEASING]
        self.cycle.transaction.rollback(point)
        moved = {task.job for task, _ in places}
        if not all(self.placer.place_task(task, np.array([row])) for task, row in places):
            return False
        return bool(places) and self._in_order(trial, rows, [job for job, _ in trial.victims() if job not in moved])

    def _place_victim(self, gang: Gang, rows: Rows) -> None:
        # A victim without GPUs may fit on nodes that the preemptor cannot use.
        wide = self.cycle.config.rehome_anywhere and any(task.cls.cpu_only for task in gang.all_tasks())
        self.placer.place_gang(gang, self.cycle.all_rows if wide else rows)


def _moved(batch: Batch) -> bool:
    """Whether a task of the batch moved; mostly all did, so the first is checked first."""
    return batch[0].status in GONE or any(task.status in GONE for task in batch)


def overspent(victims: list[Task]) -> bool:
    """Whether more of them are evicted than disruption budgets allow."""
    return any(task.budget is not None and task.budget.left < 0 for task in victims)


def feasible_rows(cycle: Cycle, job: Job) -> Rows:
    """Return the nodes that may help before any eviction: for a job of GPU tasks, those with free GPUs."""
    if any(task.cls.cpu_only for task in job.all_tasks()):
        return cycle.all_rows
    return cycle.all_rows[cycle.get(FreeGpus).any()[cycle.all_rows]]


def with_rows(cycle: Cycle, rows: Rows, tasks: list[Task]) -> Rows:
    """Return a set of nodes and those of some tasks, by name."""
    more = {task.node for task in tasks if task.node >= 0}
    if len(rows):
        more.difference_update(rows.tolist())
    if not more:
        return rows
    every = np.array([*rows.tolist(), *more], dtype=np.intp)
    return every[np.argsort(cycle.nodes.rank[every])] if len(every) > 1 else every
