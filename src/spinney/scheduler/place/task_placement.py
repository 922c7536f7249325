"""Where one task fits: which nodes have room, how they score, and which GPUs of a node are best."""

from __future__ import annotations

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Scores
from spinney.scheduler.state import status as st
from spinney.scheduler.state.nodes import Mask, Rows
from spinney.scheduler.state.tasks import GPU, Task, TaskClass, Vector

NOWHERE = -np.inf


def has_room(cycle: Cycle, cls: TaskClass, rows: Rows, amounts: Vector) -> Mask:
    """Nodes whose amounts hold one task of a class."""
    if not cls.shared:
        if cls.claims:
            amounts = amounts.copy()
            amounts[:, GPU] += _claimed(cycle, cls, rows)
        return holds(cls, amounts)
    short = cls.request > amounts
    short[:, GPU] = False
    whole = np.floor(amounts[:, GPU])
    room: Mask = ~short.any(axis=1) & (whole + _fitting_groups(cycle, cls, rows) >= cls.devices)
    if cls.memory:
        part = np.ceil(cls.memory / cycle.nodes.gpu_memory[rows] * 100) / 100
        room &= (part <= 1) | (part == np.floor(part))
    return room


def holds(cls: TaskClass, amounts: Vector) -> Mask:
    """Which rows of amounts hold what a class asks for."""
    # By column: NumPy is slow to reduce many short rows.
    enough = np.greater_equal(amounts.T, cls.request[:, None], order="C")
    return np.asarray(enough.all(axis=0))


def _claimed(cycle: Cycle, cls: TaskClass, rows: Rows) -> Vector:
    """Devices of shared claims that nodes already hold for others."""
    held = np.zeros(len(rows))
    for claim in cls.claims:
        if claim.shared:
            holders = cycle.state.holders.get(claim.claim, {}).values()
            homes = {holder.node for holder in holders if holder.node >= 0 and holder.status & st.ACTIVE}
            held += np.where(np.isin(rows, list(homes)), float(claim.count), 0.0)
    return held


def _fitting_groups(cycle: Cycle, cls: TaskClass, rows: Rows) -> Vector:
    if not len(cycle.state.gpus):
        return np.zeros(len(rows))
    result: Vector = np.minimum(cycle.state.gpus.with_room(cls)[rows], cls.devices)
    return result


def free(cycle: Cycle, rows: Rows) -> Vector:
    """What nodes have idle or will have once releasing tasks are gone."""
    total: Vector = cycle.nodes.idle.take(rows, axis=0)
    total += cycle.nodes.releasing.take(rows, axis=0)
    return total


def allowed(cycle: Cycle, task: Task, rows: Rows) -> Mask:
    """Nodes that a task fits on and may run on."""
    mask = has_room(cycle, task.cls, rows, free(cycle, rows)) & cycle.class_mask(task.cls)[rows]
    if not mask.any():
        return mask
    for hook in cycle.hooks.task_masks:
        answer = hook(task, rows)
        if answer is not None:
            mask &= answer[0]
    return mask


def total_scores(cycle: Cycle, task: Task, rows: Rows) -> Scores:
    """The sum of all scores for a set of nodes."""
    total = np.zeros(len(rows))
    for hook in cycle.hooks.scores:
        part = hook.score(task, rows)
        if part is not None:
            total += part
    return total


def fits_now(cycle: Cycle, cls: TaskClass, row: int) -> bool:
    """Whether a node has room for a class without waiting."""
    rows = np.array([row])
    return bool(has_room(cycle, cls, rows, cycle.nodes.idle.take(rows, axis=0))[0])


def choose_gpus(cycle: Cycle, task: Task, row: int, now: bool) -> tuple[tuple[str, ...], bool] | None:
    """The GPUs for a task that shares them, best first, and whether it may start at once."""
    gpus, cls = cycle.state.gpus, task.cls
    memory = float(cycle.nodes.gpu_memory[row])
    options: list[tuple[float, int]] = []
    for group in gpus.on.get(row, ()):
        if gpus.fits(group, cls):
            part = float(gpus.cells[group, 0]) / memory
            options.append((sum(score(part) for score in cycle.hooks.gpu_scores), group))
    idle, releasing = cycle.nodes.idle[row, GPU], cycle.nodes.releasing[row, GPU]
    if idle > 0 or releasing > 0:
        unused = sum(score(None) for score in cycle.hooks.gpu_scores)
        options += [(unused, -1)] * (int(idle) + int(releasing))
    for order in cycle.hooks.gpu_orders:
        options = order(task, row, options)
    options.sort(key=lambda option: -option[0])
    groups: list[str] = []
    for _, group in options[: cls.devices]:
        if group < 0:
            groups.append(_fresh_group(cycle, task, row, groups))
        else:
            groups.append(gpus.names[group])
            now = now and gpus.fits_now(group, cls)
    return (tuple(groups), now) if len(groups) == cls.devices else None


def _fresh_group(cycle: Cycle, task: Task, row: int, taken: list[str]) -> str:
    number = 0
    while (name := f"{task.key}-{number}") in taken or (row, name) in cycle.state.gpus.index:
        number += 1
    return name
