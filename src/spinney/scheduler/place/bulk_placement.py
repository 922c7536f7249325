"""Placement of many tasks of one class at once: nodes are sorted once, then filled one after the other.

This gives the same nodes as placing one by one: a node that just got a task is the fullest of its kind, so it stays the
best until it is full. It holds for tasks that need nothing but resources, and for scores that say so by their role:
`steady` ones do not change while such tasks are placed, `room` prefers nodes with room now, `density` prefers full
nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Hooks, Scores
from spinney.scheduler.state.nodes import Mask, Rows
from spinney.scheduler.state.tasks import CPU, GPU, Task, Vector

ROLES = frozenset({"steady", "room", "density"})


def scores_allow_filling(hooks: Hooks) -> bool:
    """Whether all scores have roles, and there is exactly one for room and one for density."""
    roles = [hook.role for hook in hooks.scores]
    return set(roles) <= ROLES and roles.count("density") == 1 and roles.count("room") == 1


def capacity(request: Vector, amounts: Vector) -> Vector:
    """How many times each row of amounts holds a request."""
    # By column: NumPy is slow to reduce many short rows.
    columns, requested = amounts.T.copy(), request > 0
    count = np.floor((columns[requested] / request[requested, None]).min(axis=0))
    result: Vector = np.where((columns >= 0).all(axis=0), count, 0.0)
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


@dataclass(frozen=True, slots=True)
class Candidates:
    """Nodes that hold at least one task of a class."""

    rows: Rows
    steady: Scores
    # What is left of the resource that the nodes are filled by.
    left: Vector
    # How many tasks each node holds now, and once releasing tasks are gone.
    now: Vector
    total: Vector


def find_candidates(cycle: Cycle, task: Task, rows: Rows) -> Candidates | None:
    """The nodes of a set that hold tasks like this one; None if there is none."""
    nodes = cycle.nodes
    rows = rows[allowed_rows(cycle, task, rows)]
    idle = nodes.idle.take(rows, axis=0)
    free = idle + nodes.releasing.take(rows, axis=0)
    total = capacity(task.cls.request, free)
    fits = total > 0
    if not fits.any():
        return None
    rows, total, left = rows[fits], total[fits], free[fits, _filled_by(task)]
    now = np.minimum(capacity(task.cls.request, idle[fits]), total)
    steady = steady_scores(cycle, task, rows)
    keep = steady > -np.inf
    if keep.all():
        return Candidates(rows, steady, left, now, total)
    return Candidates(rows[keep], steady[keep], left[keep], now[keep], total[keep])


def _filled_by(task: Task) -> int:
    return CPU if task.cls.cpu_only else GPU


def fill_waiting(cycle: Cycle, tasks: list[Task], candidates: Candidates) -> int:
    """Let tasks wait for nodes, those with room now first, but do not use that room up; how many found a node."""
    count = 0
    for place in np.lexsort((candidates.left, candidates.now <= 0, -candidates.steady)):
        some = tasks[count : count + int(candidates.total[place])]
        cycle.transaction.wait_all(some, int(candidates.rows[place]))
        count += len(some)
        if count == len(tasks):
            break
    return count


def fill(cycle: Cycle, tasks: list[Task], candidates: Candidates) -> int:
    """Use room that is free now, then room being released, best steady scores first; how many found a node."""
    rows, now = candidates.rows, candidates.now
    size = tasks[0].cls.request[_filled_by(tasks[0])]
    number, left, rest = 0, candidates.left.copy(), candidates.total.copy()
    for score in -np.unique(-candidates.steady):
        group = np.flatnonzero(candidates.steady == score)
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
