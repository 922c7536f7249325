"""Defragmentation: which pods to move together, so that whole nodes become free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

import numpy as np

from spinney.scheduler.config import Config
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.place.placer import Placers
from spinney.scheduler.plugins import registry
from spinney.scheduler.plugins.minruntime import longest_runtime
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.tasks import GPU, Task, affordable

# Nodes that are tried at most: each costs a few placements.
_MOST_NODES = 512


class Migration(NamedTuple):
    """A task that goes from one node to another."""

    task: str
    node: str
    to: str


class Obstacle(Enum):
    """Why a node stays as it is."""

    NOT_OURS = auto()
    SHARED_GPUS = auto()
    IN_TRANSITION = auto()
    NOT_PREEMPTIBLE = auto()
    NOT_RECREATED = auto()
    MINIMUM_RUN_TIME = auto()
    DISRUPTION_BUDGET = auto()
    TOO_MANY_MOVES = auto()
    NO_ROOM = auto()


class Migrations(NamedTuple):
    """What to move, in order, and why other nodes stay as they are: obstacles with the number of nodes."""

    moves: tuple[Migration, ...]
    kept: dict[Obstacle, int]
    # Idle GPUs of each node before and after.
    before: dict[str, float]
    after: dict[str, float]


def defragment(state: State, config: Config, now: float, most: int, comes_back: Callable[[str], bool]) -> Migrations:
    """Empty nodes that are used in part by filling up others; the state is the same afterwards.

    Only tasks that `comes_back` knows to be created again are moved, and none that a minimum run time, a priority or
    a disruption budget protects. At most `most` tasks move.
    """
    cycle = Cycle(state, config, now)
    start = cycle.transaction.checkpoint()
    try:
        registry.install(cycle, config)
        for hook in cycle.hooks.opened:
            hook()
        return _Defragmentation(cycle, most, comes_back).run()
    finally:
        cycle.transaction.rollback(start)


class _Defragmentation:
    """Looks at the nodes with the least on them first."""

    def __init__(self, cycle: Cycle, most: int, comes_back: Callable[[str], bool]) -> None:
        self._cycle = cycle
        self._most = most
        self._comes_back = comes_back
        self._runtime = longest_runtime(cycle.config, cycle.queues.specs)
        self._going = 0

    def run(self) -> Migrations:
        nodes, before = self._cycle.nodes, self._idle()
        used = nodes.allocatable[:, GPU] - nodes.idle[:, GPU]
        partly = [
            int(row)
            for row in self._cycle.all_rows
            if nodes.spec(int(row)).blocked is None and 0 < used[row] < nodes.allocatable[row, GPU]
        ]
        partly.sort(key=lambda row: (used[row], nodes.name(row)))
        targets = set(partly)
        moves: list[Migration] = []
        kept: Counter[Obstacle] = Counter()
        for row in partly[:_MOST_NODES]:
            # What was filled up meanwhile is not emptied again.
            if any(move.to == nodes.name(row) for move in moves):
                continue
            outcome = self._empty(row, np.array(sorted(targets - {row}), dtype=np.intp))
            if isinstance(outcome, Obstacle):
                kept[outcome] += 1
                continue
            targets.discard(row)
            moves += outcome
        return Migrations(tuple(moves), dict(kept), before, self._idle())

    def _idle(self) -> dict[str, float]:
        nodes = self._cycle.nodes
        idle = nodes.idle[:, GPU] + nodes.releasing[:, GPU]
        return {nodes.name(int(row)): float(idle[row]) for row in self._cycle.all_rows}

    def _empty(self, row: int, targets: Rows) -> list[Migration] | Obstacle:
        """Move everything with GPUs away from a node; else why that is not possible."""
        tasks = [task for task in self._cycle.state.tasks_on(row) if task.cls.quota > 0]
        if not tasks:
            return Obstacle.NOT_OURS
        if (protection := next(filter(None, map(self._protected, tasks)), None)) is not None:
            return protection
        if not affordable(tasks):
            return Obstacle.DISRUPTION_BUDGET
        if self._going + len(tasks) > self._most:
            return Obstacle.TOO_MANY_MOVES
        transaction = self._cycle.transaction
        point = transaction.checkpoint()
        transaction.evict_all(tasks)
        if not len(targets) or not self._place(tasks, targets):
            transaction.rollback(point)
            return Obstacle.NO_ROOM
        self._going += len(tasks)
        name = self._cycle.nodes.name
        return [Migration(task.key, name(row), name(task.node)) for task in tasks]

    def _place(self, tasks: list[Task], targets: Rows) -> bool:
        by_job: dict[str, tuple[Job, list[Task]]] = {}
        for task in tasks:
            if task.job is not None:
                by_job.setdefault(task.job.key, (task.job, []))[1].append(task)
        placer = self._cycle.get(Placers).trial
        return all(placer.place_tasks(job, own, targets) for job, own in by_job.values())

    def _protected(self, task: Task) -> Obstacle | None:
        """Why a task stays where it is; None if it may go."""
        job = task.job
        if task.spec.reservation:
            return Obstacle.SHARED_GPUS
        if job is None:
            return Obstacle.NOT_OURS
        if task.status not in (st.RUNNING, st.BOUND):
            return Obstacle.IN_TRANSITION
        if not job.preemptible:
            return Obstacle.NOT_PREEMPTIBLE
        if not self._comes_back(task.key):
            return Obstacle.NOT_RECREATED
        if self._runtime and job.last_start is not None and self._cycle.now < job.last_start + self._runtime:
            return Obstacle.MINIMUM_RUN_TIME
        return None
