"""Which tasks of a gang are placed next."""

from __future__ import annotations

from spinney.scheduler.state import status as st
from spinney.scheduler.state.gangs import Gang, Job, Member
from spinney.scheduler.state.tasks import Task


def next_tasks(gang: Gang) -> list[Task]:
    """The tasks to place next; kept until a task of the job changes."""
    job = gang.job
    if job.next_tasks is None:
        job.next_tasks, job.next_request = choose_next_tasks(job), None
    if gang is job:
        return job.next_tasks
    if gang.next_tasks is None or gang.next_tasks_beside is not job.next_tasks:
        gang.next_tasks, gang.next_tasks_beside, gang.next_request = choose_next_tasks(gang), job.next_tasks, None
    return gang.next_tasks


def choose_next_tasks(gang: Gang) -> list[Task]:
    """What the gang lacks to run, else one more task."""
    if gang.tree.simple:
        return _from_podset(gang, 0)
    return _from_set(gang, 0)


def _from_set(gang: Gang, index: int) -> list[Task]:
    members = gang.members(index)
    if not gang.set_satisfied(index):
        return [task for member in members[: gang.needed(index)] for task in _missing(gang, member)]
    for is_set, child in members:
        tasks = _from_set(gang, child) if is_set else _from_podset(gang, child)
        if tasks:
            return tasks
    return []


def _missing(gang: Gang, member: Member) -> list[Task]:
    is_set, index = member
    if is_set:
        return [] if gang.set_satisfied(index) else _from_set(gang, index)
    return [] if gang.active[index] >= gang.minimums[index] else _from_podset(gang, index)


def _from_podset(gang: Gang, leaf: int) -> list[Task]:
    waiting = [task for task in gang.tasks[leaf].values() if _to_place(task)]
    lacking = gang.minimums[leaf] - gang.active[leaf]
    if len(waiting) <= 1:
        return waiting
    if lacking <= 0:
        return [min(waiting, key=_task_order)]
    waiting.sort(key=_task_order)
    return waiting[:lacking]


def _to_place(task: Task) -> bool:
    """Whether a task needs a node: it is pending, or the trial at hand has evicted it."""
    return task.status == st.PENDING or (task.status == st.RELEASING and task.virtual)


def _task_order(task: Task) -> tuple[int, int, int, float, str]:
    return task.order


def trial_part(job: Job, pending: list[Task]) -> Gang:
    """Return the part of a job with its active tasks and some pending ones; its minimums are no larger than that."""
    active = [task for task in job.all_tasks() if task.status & st.ACTIVE]
    part = job.part([*active, *pending])
    part.minimums = [
        min(minimum, len(tasks)) if tasks else minimum for minimum, tasks in zip(job.minimums, part.tasks, strict=True)
    ]
    if not job.lone:
        part.set_minimums = list(job.set_minimums)
        _clip(part, 0)
    return part


def _clip(part: Gang, index: int) -> bool:
    node = part.tree.sets[index]
    filled = sum(bool(part.tasks[leaf]) for leaf in node.podsets) + sum(_clip(part, child) for child in node.sets)
    minimum = part.set_minimums[index]
    if minimum is not None:
        part.set_minimums[index] = min(minimum, filled)
    return filled > 0
