"""A check of the state against itself: tables that follow every change must be what the tasks add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from spinney.scheduler.state import status as st
from spinney.scheduler.state.accounting import Accounting
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.gpus import SharedGpus
from spinney.scheduler.state.nodes import Nodes
from spinney.scheduler.state.queues import zeros
from spinney.scheduler.state.specs import DEFAULT_GPU_MEMORY
from spinney.scheduler.state.tasks import GPU, MOST_UNUSED, Task
from spinney.scheduler.state.transaction import Move


class InvalidState(AssertionError):
    """Tables of the state that disagree with its tasks."""


def validate_state(state: State, moves: Iterable[Move] = ()) -> None:
    """Count nodes, GPUs, queues, jobs and classes from the tasks, and raise an error that names what differs.

    The moves are those of a cycle that is under way: a task that it moves still holds the place that it leaves.
    """
    differences = (
        _node_differences(state, moves),
        _queue_differences(state),
        _job_differences(state),
        _class_differences(state),
    )
    if wrong := list(chain(*differences)):
        raise InvalidState("; ".join(wrong))


class _Place(NamedTuple):
    """What a task holds of a node."""

    task: Task
    node: int
    status: int
    groups: tuple[str, ...]


def _places(state: State, moves: Iterable[Move]) -> list[_Place]:
    """Everything that tasks hold; those who stay come first, because they open the GPUs that others share."""
    places = [
        _Place(task, task.node, task.status, task.groups)
        for task in state.tasks.values()
        if task.node >= 0 and task.status & st.USED
    ]
    evictions: dict[str, list[Move]] = {}
    for move in moves:
        if move.kind == "evict":
            evictions.setdefault(move.task.key, []).append(move)
        elif move.kind == "keep":
            evictions[move.task.key].pop()
    for left in evictions.values():
        still_there = left and left[-1].task.status == st.RELEASING
        for move in left[:-1] if still_there else left:
            places.append(_Place(move.task, move.node, st.RELEASING, move.groups))
    return sorted(places, key=lambda place: {st.RELEASING: 1, st.PIPELINED: 2}.get(place.status, 0))


def _count_nodes(state: State, moves: Iterable[Move]) -> tuple[Nodes, SharedGpus]:
    nodes = Nodes(state.columns)
    gpus = SharedGpus(nodes)
    accounting = Accounting(nodes, gpus)
    for row in state.nodes.rows.values():
        nodes.add(state.nodes.spec(row))
    for task, node, status, groups in _places(state, moves):
        row = nodes.rows[state.nodes.name(node)]
        held, task.groups = task.groups, groups
        accounting.track(task, row, status, 1)
        task.groups = held
        if not task.spec.job and not task.spec.reservation:
            nodes.foreign[row] += task.cls.request * nodes.has[row]
    return nodes, gpus


def _node_differences(state: State, moves: Iterable[Move]) -> Iterator[str]:
    counted, gpus = _count_nodes(state, moves)
    for name, row in state.nodes.rows.items():
        other = counted.rows[name]
        for table in ("idle", "releasing", "foreign"):
            held, expected = getattr(state.nodes, table)[row], getattr(counted, table)[other]
            for column in np.flatnonzero(~np.isclose(held, expected)):
                # Whether a shared GPU counts as idle or releasing depends on the order of tasks.
                if column == GPU and state.gpus.on.get(row):
                    continue
                amount = f"{table} {state.columns.names[column]}"
                yield f"node {name}: {amount} is {held[column]}, tasks add up to {expected[column]}"
        if state.nodes.used_gpus[row] != counted.used_gpus[other]:
            yield f"node {name}: {state.nodes.used_gpus[row]} GPUs are used, tasks add up to {counted.used_gpus[other]}"
        yield from _gpu_differences(state, gpus, row, other)


def _gpu_differences(state: State, counted: SharedGpus, row: int, other: int) -> Iterator[str]:
    """Used, releasing and allocated memory of the shared GPUs of one node."""
    held = {state.gpus.names[cell]: state.gpus.cells[cell, :3].tolist() for cell in state.gpus.on.get(row, ())}
    expected = {counted.names[cell]: counted.cells[cell, :3].tolist() for cell in counted.on.get(other, ())}
    for group in held.keys() | expected.keys():
        if held.get(group, [0, 0, 0]) != expected.get(group, [0, 0, 0]):
            name = state.nodes.name(row)
            yield f"GPU {group} of node {name} holds {held.get(group)}, tasks add up to {expected.get(group)}"


def _queue_differences(state: State) -> Iterator[str]:
    queues = state.queues
    charged, fixed, waiting = zeros(len(queues)), zeros(len(queues)), zeros(len(queues))
    waiting_memory = [0.0] * len(queues)
    for job in state.jobs.values():
        if job.queue < 0:
            continue
        for task in job.all_tasks():
            for queue in queues.path[job.queue]:
                if _is_charged(task):
                    _add(charged[queue], _charge(state, task))
                    if not job.preemptible:
                        _add(fixed[queue], _charge(state, task))
                # Moves do not change this table: it is read at the start of a cycle only.
                if task.spec.status == st.PENDING:
                    _add(waiting[queue], task.cls.triple)
                    waiting_memory[queue] += task.cls.devices * task.cls.memory
    for number, name in enumerate(queues.names):
        for table, held, expected in (
            ("charged", state.charged[number], charged[number]),
            ("fixed", state.fixed[number], fixed[number]),
            ("waiting", state.waiting[number], waiting[number]),
            ("waiting GPU memory", [state.waiting_memory[number]], [waiting_memory[number]]),
        ):
            if not np.allclose(held, expected):
                yield f"queue {name}: {table} is {held}, tasks add up to {expected}"


def _is_charged(task: Task) -> bool:
    """Whether a task counts against its queue: it does at the start of a cycle, or since the cycle placed it."""
    return bool(task.status & st.CHARGED) or st.PIPELINED == task.status != task.spec.status


def _charge(state: State, task: Task) -> tuple[float, float, float]:
    memory = int(state.nodes.gpu_memory[task.node]) if task.node >= 0 else DEFAULT_GPU_MEMORY
    return task.cls.charge(memory)


def _add(amounts: list[float], more: tuple[float, float, float]) -> None:
    for resource, amount in enumerate(more):
        amounts[resource] += amount


def _job_differences(state: State) -> Iterator[str]:
    for job in state.jobs.values():
        counted = Job(job.spec, job.tree)
        for task in job.all_tasks():
            counted.count(task.podset, task.status, 1)
            if task.job is not job or state.tasks.get(task.key) is not task:
                yield f"job {job.key}: holds task {task.key}, which is not its own"
        for table in ("active", "used", "alive", "gated", "pending", "succeeded"):
            if getattr(job, table) != getattr(counted, table):
                yield f"job {job.key}: {table} is {getattr(job, table)}, tasks add up to {getattr(counted, table)}"


def _class_differences(state: State) -> Iterator[str]:
    """Classes are counted by task; those without tasks are known to be unused, and few."""
    users = Counter(task.cls for task in state.tasks.values())
    registry = state.classes
    for cls in dict.fromkeys((*registry.by_key.values(), *users)):
        if registry.by_key.get(cls.key) is not cls:
            yield f"class {cls.id}: {users[cls]} tasks are of it, but it is not registered"
        elif cls.users != users[cls]:
            yield f"class {cls.id}: users are {cls.users}, tasks add up to {users[cls]}"
        elif (cls.id in registry.unused) is bool(cls.users):
            yield f"class {cls.id}: users are {cls.users}, unused classes are {list(registry.unused)}"
    if len(registry.unused) > MOST_UNUSED:
        yield f"unused classes are {len(registry.unused)}, at most {MOST_UNUSED} are kept"
