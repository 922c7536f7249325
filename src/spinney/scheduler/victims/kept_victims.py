"""Victims that need not leave after all: once a gang is placed, victims whose room is not used stay on their nodes.

Surplus tasks of a gang are evicted first and its core last; they are kept in reverse order: first the core as a whole,
then task by task. A task is not kept if one that was evicted after it still leaves or moves.
"""

from __future__ import annotations

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.place.task_placement import free
from spinney.scheduler.state import status as st
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.tasks import GPU, Task


def keep_unneeded_victims(cycle: Cycle, since: int) -> None:
    """Cancel evictions decided since a point that help nobody; the latest victims are checked first."""
    going: dict[Job, dict[str, Task]] = {}
    for _, move, beneficiary in reversed(cycle.result.decided[since:]):
        job = move.task.job
        if move.kind == "evict" and beneficiary is not None and job is not None:
            going.setdefault(job, {}).setdefault(move.task.key, move.task)
    if not going:
        return
    staying: set[str] = set()
    for job, tasks in going.items():
        if _may_stay(cycle, next(iter(tasks.values()))):
            staying.update(_staying(cycle, job, list(tasks.values())))
    if staying:
        cycle.result.withdraw_evictions(staying)


def _may_stay(cycle: Cycle, task: Task) -> bool:
    """Whether a node has GPUs left for a task: a quick check that rules most victims out."""
    idle, releasing = cycle.nodes.idle[task.node, GPU], cycle.nodes.releasing[task.node, GPU]
    return task.cls.shared or bool(idle + releasing >= task.cls.needs[GPU])


def _staying(cycle: Cycle, job: Job, tasks: list[Task]) -> list[str]:
    """Keep as many tasks of a gang as possible, in the order given, but never a part of its core or of a subgroup."""
    transaction = cycle.transaction
    point, sure = transaction.checkpoint(), 0
    for count, task in enumerate(tasks, start=1):
        if not _stays(cycle, job, task):
            break
        if job.in_one_piece():
            point, sure = transaction.checkpoint(), count
    transaction.rollback(point)
    return [task.key for task in tasks[:sure]]


def _stays(cycle: Cycle, job: Job, task: Task) -> bool:
    """Keep a task on its node; False if it was moved or its room is needed, and then the caller rolls back."""
    if task.status != st.RELEASING or task.node < 0:
        return False
    row = np.array([task.node])
    if any(check(job, [task]) is not None for check in cycle.hooks.over_capacity):
        return False
    answers = [mask(task, row) for mask in cycle.hooks.task_masks]
    if not all(answer[0][0] for answer in answers if answer is not None):
        return False
    cycle.transaction.cancel_eviction(task)
    return bool((free(cycle, row) >= 0).all()) and not cycle.state.gpus.overcommitted(task.node, task.groups)
