"""Who is evicted first: the line of victims of one search, and what many of them free together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.filters import freed_gpus
from spinney.scheduler.gangs import eviction_step
from spinney.scheduler.nodes import Rows
from spinney.scheduler.order import JobOrder
from spinney.scheduler.tasks import Task, Vector

# Tasks of one job that go together.
Batch = list[Task]


@dataclass(frozen=True, slots=True)
class Leaving:
    """Victims in arrays, in order: the number of the batch, the row, and the GPUs freed, of each that is on a node."""

    batch: Rows
    rows: Rows
    gpus: Vector

    @staticmethod
    def of(cycle: Cycle, batches: list[Batch]) -> Leaving:
        """The victims of some batches."""
        numbers: list[int] = []
        rows: list[int] = []
        gpus: list[float] = []
        for number, batch in enumerate(batches):
            for task in batch:
                if task.node >= 0:
                    numbers.append(number)
                    rows.append(task.node)
                    gpus.append(freed_gpus(cycle, task))
        return Leaving(np.array(numbers, dtype=np.intp), np.array(rows, dtype=np.intp), np.array(gpus))


class VictimLine:
    """Victims of one job's search in order; remembered, because every probe starts from the first again."""

    def __init__(self, make_order: Callable[[], JobOrder]) -> None:
        self._make_order = make_order
        self._order = make_order()
        self._steps: list[Batch] = []
        # Whether every job so far goes as a whole; only then is the order the same with some of them gone.
        self._whole = True

    def known(self, recorded: set[str]) -> list[Batch]:
        """The steps made so far, without recorded ones; none where the order depends on who is recorded."""
        if not recorded:
            return self._steps.copy()
        return [step for step in self._steps if not (step and step[0].key in recorded)] if self._whole else []

    def steps(self, recorded: set[str], skip: int = 0) -> Iterator[Batch]:
        """One eviction step after the other, without those that are recorded already, after so many known ones."""
        if recorded and not self._whole:
            yield from _slow_steps(self._make_order(), recorded)
            return
        number = self._after(recorded, skip)
        while True:
            if number == len(self._steps):
                if not self._order:
                    return
                self._steps.append(self._next())
                if recorded and not self._whole:
                    yield from _skip(_slow_steps(self._make_order(), recorded), self._steps[:number], recorded)
                    return
            step = self._steps[number]
            number += 1
            if not (recorded and step and step[0].key in recorded):
                yield step

    def _after(self, recorded: set[str], skip: int) -> int:
        """How many steps in all come before the one after so many that are not recorded."""
        if not recorded:
            return skip
        number = 0
        while skip:
            step = self._steps[number]
            number += 1
            skip -= not (step and step[0].key in recorded)
        return number

    def _next(self) -> Batch:
        gang = self._order.pop()
        step, more = eviction_step(gang)
        if more:
            self._whole = False
            gone = {task.key for task in step}
            self._order.push(gang.part(task for task in gang.all_tasks() if task.key not in gone))
        return step


def _slow_steps(order: JobOrder, recorded: set[str]) -> Iterator[Batch]:
    while order:
        gang = order.pop()
        step, more = eviction_step(gang)
        if any(task.key in recorded for task in step):
            rest = [task for task in gang.all_tasks() if task.key not in recorded]
            if rest:
                order.push(gang.part(rest))
            continue
        if more:
            gone = {task.key for task in step}
            order.push(gang.part(task for task in gang.all_tasks() if task.key not in gone))
        yield step


def _skip(steps: Iterator[Batch], done: list[Batch], recorded: set[str]) -> Iterator[Batch]:
    """The steps after those already handed out."""
    for _ in range(sum(not (step and step[0].key in recorded) for step in done)):
        next(steps, None)
    yield from steps
