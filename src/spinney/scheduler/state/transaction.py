"""Transaction of tasks in the state, each of them recorded: a trial is undone exactly."""

from __future__ import annotations

from collections.abc import Callable
from operator import setitem
from typing import Any

from msgspec import Struct

from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.specs import DEFAULT_GPU_MEMORY
from spinney.scheduler.state.tasks import Task, TaskClass, Triple
from spinney.scheduler.state.undo_log import UndoLog

Checkpoint = tuple[int, int]


class Move(Struct, gc=False):
    """One thing done to a task: `bind`, `wait` (placed on room not free yet), `evict` or `keep` (not evicted)."""

    kind: str
    task: Task
    node: int
    groups: tuple[str, ...] = ()


class Before(Struct, gc=False):
    """What a task was before a trial evicted it."""

    status: int
    node: int
    groups: tuple[str, ...]
    zones: dict[int, dict[str, float]]


class Transaction:
    """Transaction tasks in the state and remembers how to take that back."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.accounting = state.accounting
        self._log = UndoLog()
        self.done: list[Move] = []
        # The placement of tasks before the trial evicted them.
        self.evicted: dict[str, Before] = {}
        # The placement of tasks before a decided eviction.
        self._leaving: dict[str, Before] = {}
        # Grows with every change and every rollback: results for an older version are stale.
        self.version = 0
        # Called when a task takes resources of a node (1) or frees them (-1).
        self.observers: list[Callable[[Task, int, int], None]] = []

    def checkpoint(self) -> Checkpoint:
        """A point to come back to."""
        return len(self._log), len(self.done)

    def rollback(self, point: Checkpoint) -> None:
        """Undo everything after a point."""
        entries, moves = point
        if len(self._log) > entries:
            self.version += 1
            self._log.undo(entries)
        del self.done[moves:]

    def set(self, target: object, attribute: str, value: object) -> None:
        """Change an attribute of a task, a job or a table."""
        self.version += 1
        self._log.set(target, attribute, value)

    def put(self, table: Any, key: Any, value: Any) -> None:
        """Replace an item of a list or a dictionary."""
        self.version += 1
        self._log.put(table, key, value)

    def bind(self, task: Task, row: int, groups: tuple[str, ...] = ()) -> None:
        """Place a pending task on room that is free now."""
        self._place(task, row, groups, st.ALLOCATED)
        self.done.append(Move("bind", task, row, groups))

    def bind_all(self, tasks: list[Task], row: int) -> None:
        """Place pending tasks of one class and one subgroup on room that is free now."""
        self._place_all(tasks, row, st.ALLOCATED)
        self.done += [Move("bind", task, row) for task in tasks]

    def wait_all(self, tasks: list[Task], row: int) -> None:
        """The same for room that is still being released, and for tasks that a trial evicted."""
        if self.evicted or len(tasks) == 1:
            for task in tasks:
                self.wait(task, row)
            return
        self._place_all(tasks, row, st.PIPELINED)
        self.done += [Move("wait", task, row) for task in tasks]

    def wait(self, task: Task, row: int, groups: tuple[str, ...] = ()) -> None:
        """Place a task on room that is free or being released; one that this trial evicted from there just stays."""
        before = self.evicted.get(task.key)
        here = before is not None and task.status == st.RELEASING and task.node == row
        if before is not None and here and self._unmoved(task, before, groups):
            self._keep(task, before)
            return
        self._place(task, row, groups, st.PIPELINED)
        self.done.append(Move("wait", task, row, groups))

    def evict(self, task: Task) -> None:
        """Mark a task as leaving; its room counts as releasing."""
        if task.status == st.RELEASING:
            return
        self._log.record((restore_eviction, self.evicted, task.key, self.evicted.get(task.key)))
        self.evicted[task.key] = Before(task.status, task.node, task.groups, task.zones)
        self._spend(task, 1)
        row = task.node
        self.accounting.shift(task, task.status, st.RELEASING, self._log)
        self._set_status(task, st.RELEASING, True)
        self._charge(task, row, -1)
        self.done.append(Move("evict", task, row, task.groups))

    def evict_all(self, tasks: list[Task]) -> None:
        """The same for many: each node and each queue is written once."""
        if len(tasks) == 1 or self.observers or not all(_plain_victim(task) for task in tasks):
            for task in tasks:
                self.evict(task)
            return
        together: dict[tuple[int, TaskClass, int], list[Task]] = {}
        held = _Held(self.state)
        for task in tasks:
            if task.status == st.RELEASING:
                continue
            together.setdefault((task.node, task.cls, task.status), []).append(task)
            self._log.record((restore_eviction, self.evicted, task.key, self.evicted.get(task.key)))
            self.evicted[task.key] = Before(task.status, task.node, task.groups, task.zones)
            self._spend(task, 1)
            self._set_status(task, st.RELEASING, True)
            held.give_back(task)
            self.done.append(Move("evict", task, task.node, task.groups))
        for (_, _, status), some in together.items():
            self.accounting.shift(some[0], status, st.RELEASING, self._log, len(some))
        held.write(self._log)

    def cancel_eviction(self, task: Task) -> None:
        """Take an eviction that was decided back: the task keeps its place."""
        self._keep(task, self._leaving[task.key])

    def delay(self, job: Job, since: Checkpoint) -> None:
        """Turn every bind of a job since a point into a wait: the gang starts together or not yet."""
        for number in range(since[1], len(self.done)):
            move = self.done[number]
            if move.kind != "bind" or move.task.job is not job:
                continue
            task = move.task
            self.accounting.shift(task, st.ALLOCATED, st.PIPELINED, self._log)
            self._set_status(task, st.PIPELINED, True)
            self.done[number] = Move("wait", task, move.node, move.groups)

    def settle(self, since: Checkpoint) -> list[Move]:
        """Take the moves since a point as decided, and return those that still hold, in order."""
        moves = self.done[since[1] :]
        kept = {move.task.key for move in moves if move.kind == "keep"}
        held: list[Move] = []
        for move in moves:
            task = move.task
            if move.kind == "keep" or (move.kind == "evict" and task.key in kept):
                continue
            if move.kind == "bind":
                self._set_status(task, st.BINDING, task.virtual)
            elif move.kind == "evict":
                self._log.set(task, "virtual", False)
            held.append(move)
        for key in [move.task.key for move in moves]:
            if key in self.evicted:
                before = self._leaving[key] = self.evicted.pop(key)
                self._log.record((setitem, self.evicted, key, before))
        return held

    def _unmoved(self, task: Task, before: Before, groups: tuple[str, ...]) -> bool:
        same_gpus = not task.cls.shared or groups == task.groups
        return same_gpus and (not task.zones or task.zones == before.zones)

    def _keep(self, task: Task, before: Before) -> None:
        status, row, groups = before.status, before.node, before.groups
        self._spend(task, -1)
        if task.zones or before.zones:
            self._log.set(task, "zones", before.zones)
        if task.groups != groups:
            self._log.set(task, "groups", groups)
        self.accounting.shift(task, st.RELEASING, status, self._log)
        self._set_status(task, status, False)
        self._charge(task, row, 1)
        self.done.append(Move("keep", task, row, groups))

    def _spend(self, task: Task, count: int) -> None:
        if task.budget is not None:
            self._log.set(task.budget, "spent", task.budget.spent + count)

    def _place(self, task: Task, row: int, groups: tuple[str, ...], status: int) -> None:
        self._log.record((_restore_place, task, task.node, task.groups))
        task.node = row
        if groups:
            task.groups = groups
        self._set_status(task, status, True)
        self.accounting.track(task, row, status, 1, self._log)
        self._charge(task, row, 1)

    def _place_all(self, tasks: list[Task], row: int, status: int) -> None:
        """Place many at once: their node and their queue change only once."""
        first, log = tasks[0], self._log
        if len({(task.podset, task.job, task.status) for task in tasks}) > 1 or self.observers:
            for task in tasks:
                self._place(task, row, (), status)
            return
        self.version += 1
        log.record((_restore_all, tasks, first.status, [(task.node, task.groups, task.virtual) for task in tasks]))
        _count_all(tasks, first.status, status)
        for task in tasks:
            task.node, task.status, task.virtual = row, status, True
        self.accounting.track_many(first, row, status, len(tasks), log)
        self._charge(first, row, len(tasks))

    def _set_status(self, task: Task, status: int, virtual: bool) -> None:
        self.version += 1
        self._log.record((_restore_status, task, task.status, task.virtual))
        _restore_status(task, status, virtual)

    def _charge(self, task: Task, row: int, sign: int) -> None:
        for observer in self.observers:
            observer(task, row, sign)
        job, state = task.job, self.state
        if job is None or job.queue < 0:
            return
        cls = task.cls
        memory = int(state.nodes.gpu_memory[row]) if cls.memory and row >= 0 else DEFAULT_GPU_MEMORY
        charge = cls.charge(memory) if cls.memory else cls.triple
        self._charge_table(state.charged, job.queue, charge, sign)
        if not job.preemptible:
            self._charge_table(state.fixed, job.queue, charge, sign)

    def _charge_table(self, table: list[list[float]], queue: int, charge: Triple, sign: int) -> None:
        for number in self.state.queues.path[queue]:
            old = table[number]
            self._log.record((setitem, table, number, old))
            table[number] = [old[0] + sign * charge[0], old[1] + sign * charge[1], old[2] + sign * charge[2]]


def _plain_victim(task: Task) -> bool:
    return not task.cls.shared and not task.cls.claims and task.job is not None and task.job.preemptible


class _Held:
    """What queues hold while tasks are taken out of them one by one."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.charged: dict[int, list[float]] = {}

    def give_back(self, task: Task) -> None:
        job = task.job
        if job is None or job.queue < 0:
            return
        cpu, memory, gpus = task.cls.triple
        for number in self.state.queues.path[job.queue]:
            held = self.charged.get(number)
            if held is None:
                held = self.charged[number] = list(self.state.charged[number])
            held[0] -= cpu
            held[1] -= memory
            held[2] -= gpus

    def write(self, log: UndoLog) -> None:
        table = self.state.charged
        for number, held in self.charged.items():
            log.put(table, number, held)


def _count_all(tasks: list[Task], before: int, after: int) -> None:
    job, leaf = tasks[0].job, tasks[0].podset
    if job is not None:
        job.count(leaf, before, -len(tasks))
        job.count(leaf, after, len(tasks))
        job.next_tasks = None


def _restore_all(tasks: list[Task], status: int, places: list[tuple[int, tuple[str, ...], bool]]) -> None:
    _count_all(tasks, tasks[0].status, status)
    for task, (node, groups, virtual) in zip(tasks, places, strict=True):
        task.node, task.groups, task.virtual, task.status = node, groups, virtual, status


def restore_eviction(evicted: dict[str, Before], key: str, before: Before | None) -> None:
    """Undo that a task was evicted: it was not before, or was so with another placement."""
    if before is None:
        evicted.pop(key, None)
    else:
        evicted[key] = before


def _restore_place(task: Task, node: int, groups: tuple[str, ...]) -> None:
    task.node = node
    task.groups = groups


def _restore_status(task: Task, status: int, virtual: bool) -> None:
    job = task.job
    if job is not None:
        job.recount(task.podset, task.status, status)
        job.next_tasks = None
    task.status = status
    task.virtual = virtual
