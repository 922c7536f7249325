"""The order in which the tasks of a gang are evicted."""

from __future__ import annotations

from spinney.scheduler.state import status as st
from spinney.scheduler.state.gangs import Gang
from spinney.scheduler.state.tasks import Task, affordable


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
