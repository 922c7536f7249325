"""The order of victims of one search."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spinney.scheduler.share.job_order import JobOrder
from spinney.scheduler.victims.eviction_step import eviction_step
from spinney.scheduler.victims.freed_gpus import NOTHING_FREED, Batch, FreedGpus


class VictimOrder:
    """Eviction steps of one search in order; kept, because every probe starts from the first again."""

    def __init__(self, make_order: Callable[[], JobOrder]) -> None:
        self._make_order = make_order
        self._order = make_order()
        self._steps: list[Batch] = []
        # The number of each step that evicts anyone, by its first task; and the same steps in arrays, as far as asked.
        self._numbers: dict[str, int] = {}
        self._leaving = NOTHING_FREED
        self._in_arrays = 0
        # Whether every job so far goes as a whole; only then is the order the same with some of them gone.
        self._whole = True

    def known(self, recorded: set[str]) -> list[int]:
        """Return the numbers of known steps without recorded ones; none if the order depends on recorded victims."""
        if recorded and not self._whole:
            return []
        return [number for key, number in self._numbers.items() if key not in recorded]

    def made(self, numbers: list[int]) -> list[Batch]:
        """Return known steps by number."""
        return [self._steps[number] for number in numbers]

    def leaving(self, numbers: list[int]) -> FreedGpus:
        """Return the GPUs that known steps free, on the nodes where the victims ran when the search began."""
        if self._in_arrays < len(self._steps):
            more = FreedGpus.of(self._order.cycle, self._steps[self._in_arrays :], self._in_arrays)
            self._leaving, self._in_arrays = self._leaving.followed_by(more), len(self._steps)
        return self._leaving.only(numbers)

    def steps(self, recorded: set[str], start: int = 0) -> Iterator[Batch]:
        """Yield eviction steps from a number on, without recorded ones."""
        if recorded and not self._whole:
            yield from _slow_steps(self._make_order(), recorded)
            return
        number = start
        while True:
            if number == len(self._steps):
                if not self._order:
                    return
                self._make()
                if recorded and not self._whole:
                    yield from _skip(_slow_steps(self._make_order(), recorded), self._steps[:number], recorded)
                    return
            step = self._steps[number]
            number += 1
            if not (recorded and step and step[0].key in recorded):
                yield step

    def _make(self) -> None:
        gang = self._order.pop()
        step, more = eviction_step(gang)
        if step:
            self._numbers[step[0].key] = len(self._steps)
        self._steps.append(step)
        if more:
            self._whole = False
            gone = {task.key for task in step}
            self._order.push(gang.part(task for task in gang.all_tasks() if task.key not in gone))


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
    """Yield the steps after those that were already yielded."""
    for _ in range(sum(not (step and step[0].key in recorded) for step in done)):
        next(steps, None)
    yield from steps
