"""The order of victims of one search, and the steps in which a gang gives its tasks up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spinney.scheduler.share.job_order import JobOrder
from spinney.scheduler.state import status as st
from spinney.scheduler.state.gangs import Gang
from spinney.scheduler.state.tasks import Task, affordable
from spinney.scheduler.victims.freed_gpus import NOTHING_FREED, Batch, FreedGpus


def eviction_step(gang: Gang) -> tuple[list[Task], bool]:
    """The tasks to evict first: one to spare, else a subgroup to spare, else all; and whether more would remain.

    Nothing where disruption budgets allow none of that.
    """
    lone = gang.tree.simple and gang.set_minimums[0] is None
    if lone and gang.active[0] <= gang.minimums[0]:
        # Nearly every victim is a single group without surplus tasks.
        return _allowed(_active_tasks(gang, 0)), False
    tasks = _spare(gang, 0) or _allowed(_all_active(gang, 0))
    return tasks, 0 < len(tasks) < sum(gang.active)


def _allowed(tasks: list[Task]) -> list[Task]:
    return tasks if affordable(tasks) else []


def _spare(gang: Gang, index: int) -> list[Task]:
    satisfied = gang.satisfied_members(index)
    if not satisfied:
        return []
    members = gang.members(index)[::-1]
    if _has_surplus(gang, index):
        for is_set, child in members:
            tasks = _spare(gang, child) if is_set else _spare_task(gang, child)
            if tasks:
                return tasks
    if gang.needed(index) < satisfied:
        for is_set, child in members:
            tasks = _allowed(_all_active(gang, child) if is_set else _active_tasks(gang, child))
            if tasks:
                return tasks
    return []


def _has_surplus(gang: Gang, index: int) -> bool:
    node = gang.tree.sets[index]
    if gang.satisfied_members(index) > gang.needed(index):
        return True
    if any(gang.active[leaf] > gang.minimums[leaf] for leaf in node.podsets):
        return True
    return any(_has_surplus(gang, child) for child in node.sets)


def _spare_task(gang: Gang, leaf: int) -> list[Task]:
    if gang.active[leaf] <= gang.minimums[leaf]:
        return []
    return [task for task in _active_tasks(gang, leaf) if task.budget is None or task.budget.left > 0][:1]


def _active_tasks(gang: Gang, leaf: int) -> list[Task]:
    tasks = [task for task in gang.tasks[leaf].values() if task.status & st.ACTIVE]
    if len(tasks) > 1:
        tasks.sort(key=lambda task: task.order, reverse=True)
    return tasks


def _all_active(gang: Gang, index: int) -> list[Task]:
    return [task for leaf in gang.tree.podsets_under(index) for task in _active_tasks(gang, leaf)]


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
