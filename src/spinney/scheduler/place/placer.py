"""Placement of gangs: all of a gang's next tasks, subgroup by subgroup, or none."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import Enum
from functools import cached_property, partial
from itertools import chain, groupby

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Group
from spinney.scheduler.place.bulk_placement import fill, fill_waiting, find_candidates, scores_allow_filling
from spinney.scheduler.place.node_ranking import Rankings
from spinney.scheduler.place.refusals import no_room
from spinney.scheduler.place.task_placement import NOWHERE, allowed, choose_gpus, fits_now, total_scores
from spinney.scheduler.state.gangs import Gang
from spinney.scheduler.state.next_tasks import next_tasks
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.tasks import Task


class Mode(Enum):
    """Whether placements are meant: a trial lets every task wait, also for resources idle now, and notes no problem."""

    REAL = "real"
    TRIAL = "trial"


class Placer:
    """Places gangs and tasks in one mode."""

    def __init__(self, cycle: Cycle, mode: Mode, rankings: Rankings) -> None:
        self.cycle = cycle
        self.trial = mode is Mode.TRIAL
        # Nodes of the latest scenario: no other has a GPU that is free, or will be; None before any.
        self.open_rows: Rows | None = None
        self._rankings = rankings
        # Classes that no node took, with the version of the state and the node set.
        self._refused: dict[tuple[int, Hashable], tuple[int, Rows]] = {}

    def place_gang(self, gang: Gang, rows: Rows) -> bool:
        """Place a gang's next tasks on a set of nodes; on failure the caller rolls back."""
        for hook in self.cycle.hooks.before_job:
            hook(gang)
        tasks = next_tasks(gang)
        if not tasks:
            return False
        for check in self.cycle.hooks.over_capacity:
            problem = check(gang.job, tasks)
            if problem is not None:
                if not self.trial:
                    self.cycle.result.add_problem(gang.job, problem)
                return False
        return self.place_tasks(gang, tasks, rows)

    def place_tasks(self, gang: Gang, tasks: list[Task], rows: Rows) -> bool:
        """Place some tasks of a gang, whatever its queue may hold."""
        if not gang.tree.simple or gang.tree.constrained or self.cycle.hooks.subsets:
            return self._place_set(gang, 0, tasks, rows)
        if len(tasks) == 1:
            # Nearly every job has one task: if it is not placed, there is nothing to undo.
            return self._place_podset(gang, tasks, rows)
        point = self.cycle.transaction.checkpoint()
        if self._place_podset(gang, tasks, rows):
            return True
        self.cycle.transaction.rollback(point)
        return False

    def place_task(self, task: Task, rows: Rows) -> bool:
        """Place a task on the best node that takes it."""
        mask = allowed(self.cycle, task, rows)
        if not mask.any():
            return False
        if len(rows) == 1:
            return self._put(task, int(rows[0]))
        scores = np.where(mask, total_scores(self.cycle, task, rows), NOWHERE)
        while True:
            best = int(np.argmax(scores))
            if scores[best] == NOWHERE:
                return False
            if self._put(task, int(rows[best])):
                return True
            scores[best] = NOWHERE

    def _place_set(self, gang: Gang, index: int, tasks: list[Task], rows: Rows) -> bool:
        """Place a set of subgroups, on the first node set that holds all of it."""
        if not tasks:
            return True
        node = gang.tree.sets[index]
        leaves = sorted({task.podset for task in tasks})
        for subset in self._subsets(Group(gang, node.name, node.constraint, leaves, tasks), rows):
            point = self.cycle.transaction.checkpoint()
            if self._place_members(gang, index, tasks, subset):
                return True
            self.cycle.transaction.rollback(point)
        return False

    def _place_members(self, gang: Gang, index: int, tasks: list[Task], rows: Rows) -> bool:
        for is_set, child in gang.members(index):
            if is_set:
                leaves = set(gang.tree.podsets_under(child))
                if not self._place_set(gang, child, [task for task in tasks if task.podset in leaves], rows):
                    return False
                continue
            own = [task for task in tasks if task.podset == child]
            if own and not self._place_leaf(gang, child, own, rows):
                return False
        return True

    def _place_leaf(self, gang: Gang, leaf: int, tasks: list[Task], rows: Rows) -> bool:
        podset = gang.tree.podsets[leaf]
        for subset in self._subsets(Group(gang, podset.name, podset.constraint, [leaf], tasks), rows):
            point = self.cycle.transaction.checkpoint()
            if self._place_podset(gang, tasks, subset):
                return True
            self.cycle.transaction.rollback(point)
        return False

    def _subsets(self, group: Group, rows: Rows) -> Iterable[Rows]:
        """The node sets to try for a group, in order."""
        hooks = self.cycle.hooks
        sets: Iterable[Rows] = (rows,)
        for hook in [*hooks.constrained_subsets, *hooks.subsets] if group.constraint else hooks.subsets:
            sets = chain.from_iterable(map(partial(hook, group), sets))
        return sets

    def _place_podset(self, gang: Gang, tasks: list[Task], rows: Rows) -> bool:
        """Place tasks of one subgroup; on failure note why, unless it is a trial."""
        count = 0
        for run in [tasks] if len(tasks) == 1 else _runs(tasks, self.cycle.state.inter_pod):
            placed = self._place_run(run, rows)
            count += placed
            if placed < len(run):
                if not self.trial:
                    self.cycle.result.add_problem(gang.job, no_room(self.cycle, gang, tasks[count], count, rows))
                return False
        return True

    def _place_run(self, tasks: list[Task], rows: Rows) -> int:
        """Place tasks of one class; how many found a node."""
        first = tasks[0]
        plain = self._can_fill(first)
        if plain and len(tasks) > 1:
            return self._fill(tasks, rows)
        if plain and not self.cycle.state.inter_pod and self._covers(first, rows):
            return int(self._place_best(first))
        if plain and self.trial:
            return int(self._try_one(first, rows))
        for number, task in enumerate(tasks):
            if not self.place_task(task, rows):
                return number
        return len(tasks)

    @cached_property
    def _scores_allow_filling(self) -> bool:
        return scores_allow_filling(self.cycle.hooks)

    def _can_fill(self, task: Task) -> bool:
        """Whether tasks of a class may be placed together."""
        if not task.cls.plain or self.cycle.hooks.before_placement or task.spec.nominated_node:
            return False
        return self._scores_allow_filling

    def _fill(self, tasks: list[Task], rows: Rows) -> int:
        candidates = find_candidates(self.cycle, tasks[0], rows)
        if candidates is None:
            return 0
        return (fill_waiting if self.trial else fill)(self.cycle, tasks, candidates)

    def _covers(self, task: Task, rows: Rows) -> bool:
        """Whether no node outside a set has room for a task, so that the best of all nodes is the best of the set.

        Trials change shared GPUs to and fro, and with them what tasks without GPUs prefer: those are not ranked there.
        """
        if not self.trial:
            return rows is self.cycle.all_rows
        return task.cls.gpu.whole > 0 and (rows is self.open_rows or rows is self.cycle.all_rows)

    def _place_best(self, task: Task) -> bool:
        """Place one task on the best of all nodes."""
        best = self._rankings.best(task)
        if best is None:
            return False
        row, now = best
        transaction = self.cycle.transaction
        (transaction.bind if now and not self.trial else transaction.wait)(task, row)
        return True

    def _try_one(self, task: Task, rows: Rows) -> bool:
        """Place one task in a trial; what just failed for its class fails again while nothing has changed."""
        key = (task.cls.id, self.cycle.placement_key(task))
        version, refused_by = self._refused.get(key, (-1, None))
        transaction = self.cycle.transaction
        if version == transaction.version and refused_by is rows and not self.cycle.state.inter_pod:
            return False
        if self.place_task(task, rows):
            return True
        self._refused[key] = (transaction.version, rows)
        return False

    def _put(self, task: Task, row: int) -> bool:
        """Put a task on a node: at once if it has room now, else to wait for it."""
        cycle = self.cycle
        now = not self.trial and fits_now(cycle, task.cls, row)
        for hook in cycle.hooks.before_placement:
            hook(task, row)
        groups: tuple[str, ...] = ()
        if task.cls.shared:
            chosen = choose_gpus(cycle, task, row, now)
            if chosen is None:
                return False
            groups, now = chosen
        (cycle.transaction.bind if now else cycle.transaction.wait)(task, row, groups)
        return True


class Placers:
    """The placers of a cycle, one for each mode; they share what they know about nodes."""

    def __init__(self, cycle: Cycle) -> None:
        rankings = Rankings(cycle)
        self.real = Placer(cycle, Mode.REAL, rankings)
        self.trial = Placer(cycle, Mode.TRIAL, rankings)


def _runs(tasks: list[Task], inter_pod: bool) -> list[list[Task]]:
    """Neighbours of one class, together; where rules of others are about labels, also of the same labels."""
    return [list(run) for _, run in groupby(tasks, key=_class_and_labels if inter_pod else _class_of)]


def _class_and_labels(task: Task) -> tuple[int, str, list[tuple[str, str]]]:
    return (*_class_of(task), sorted(task.spec.labels.items()))


def _class_of(task: Task) -> tuple[int, str]:
    return (task.cls.id, task.spec.nominated_node)
