"""Placing many tasks of one class at once: nodes are sorted once, then filled one after the other.

This gives the same nodes as placing one by one, because a node that just got a task is the fullest of its kind and so
stays the best until it is full. It holds for tasks that look at nothing but room, and for scores that say so by their
role: `steady` ones do not change while such tasks are placed, `room` prefers nodes with room now, `density` prefers
full nodes.
"""

from __future__ import annotations

import numpy as np

from spinney.scheduler.cycle import Cycle, Scores
from spinney.scheduler.state.nodes import Mask, Rows
from spinney.scheduler.state.tasks import CPU, GPU, Task, TaskClass, Vector

ROLES = frozenset({"steady", "room", "density"})


def can_fill(cycle: Cycle, task: Task) -> bool:
    """Whether tasks of a class may be placed together."""
    if not task.cls.plain or cycle.assign is not None:
        return False
    if task.spec.nominated_node:
        return False
    if cycle.fillable is None:
        roles = [hook.role for hook in cycle.hooks.scores]
        cycle.fillable = set(roles) <= ROLES and roles.count("density") == 1 and roles.count("room") == 1
    return cycle.fillable


def capacity(cls: TaskClass, amounts: Vector) -> Vector:
    """How many tasks of a class each row of amounts holds."""
    asked = cls.request > 0
    count = np.floor((amounts[:, asked] / cls.request[asked]).min(axis=1))
    result: Vector = np.where((amounts >= 0).all(axis=1), count, 0.0)
    return result


def steady_scores(cycle: Cycle, task: Task, rows: Rows) -> Scores:
    """The part of the scores that stays as it is while a class is placed."""
    total = np.zeros(len(rows))
    for hook in cycle.hooks.scores:
        if hook.role == "steady":
            part = hook.score(task, rows)
            if part is not None:
                total += part
    return total


def allowed_rows(cycle: Cycle, task: Task, rows: Rows) -> Mask:
    """Nodes that a class may run on, whatever room they have."""
    mask = cycle.class_mask(task.cls)[rows]
    for hook in cycle.hooks.task_masks:
        answer = hook(task, rows)
        if answer is not None:
            mask = mask & answer[0]
    return mask


def fill(cycle: Cycle, tasks: list[Task], rows: Rows, trial: bool) -> int:
    """Place tasks of one class on a set of nodes; how many found a place."""
    task, nodes = tasks[0], cycle.nodes
    rows = rows[allowed_rows(cycle, task, rows)]
    idle = nodes.idle[rows]
    spare = idle + nodes.releasing[rows]
    total = capacity(task.cls, spare)
    fits = total > 0
    if not fits.any():
        return 0
    rows, total, left = rows[fits], total[fits], spare[fits, CPU if task.cls.cpu_only else GPU]
    now = np.minimum(capacity(task.cls, idle[fits]), total)
    steady = steady_scores(cycle, task, rows)
    keep = steady > -np.inf
    if not keep.all():
        rows, total, left, now, steady = rows[keep], total[keep], left[keep], now[keep], steady[keep]
    if trial:
        return _fill_trial(cycle, tasks, rows, np.lexsort((left, now <= 0, -steady)), total)
    return _fill_now(cycle, tasks, rows, (steady, left, now, total))


def _fill_trial(cycle: Cycle, tasks: list[Task], rows: Rows, order: Rows, total: Vector) -> int:
    """Everyone waits; room that is free now is preferred, but not used up."""
    number = 0
    for place in order:
        some = tasks[number : number + int(total[place])]
        cycle.transaction.wait_all(some, int(rows[place]))
        number += len(some)
        if number == len(tasks):
            break
    return number


def _fill_now(cycle: Cycle, tasks: list[Task], rows: Rows, columns: tuple[Scores, Vector, Vector, Vector]) -> int:
    """Room that is free now first, then room being released; better steady scores before either."""
    steady, left, now, total = columns
    size = tasks[0].cls.request[CPU if tasks[0].cls.cpu_only else GPU]
    number, left, rest = 0, left.copy(), total.copy()
    for score in -np.unique(-steady):
        group = np.flatnonzero(steady == score)
        open_now = group[now[group] > 0]
        for place in open_now[np.argsort(left[open_now], kind="stable")]:
            count = min(int(now[place]), len(tasks) - number)
            if not count:
                break
            cycle.transaction.bind_all(tasks[number : number + count], int(rows[place]))
            number += count
            left[place] -= count * size
            rest[place] -= count
        if number == len(tasks):
            break
        for place in group[np.argsort(left[group], kind="stable")]:
            count = min(int(rest[place]), len(tasks) - number)
            if count:
                cycle.transaction.wait_all(tasks[number : number + count], int(rows[place]))
                number += count
        if number == len(tasks):
            break
    return number
