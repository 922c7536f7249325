"""Placing a gang: all of its next tasks, subgroup by subgroup, or nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby

from spinney.scheduler.cycle import Cycle, Group
from spinney.scheduler.place.bulk_placement import can_fill, fill
from spinney.scheduler.place.node_ranking import covers, place_best
from spinney.scheduler.place.refusals import no_room
from spinney.scheduler.place.task_placement import place
from spinney.scheduler.state.gangs import Gang
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.tasks import Task


def place_gang(cycle: Cycle, gang: Gang, rows: Rows, trial: bool) -> bool:
    """Place a gang's next tasks on a set of nodes; on failure the caller rolls back."""
    for hook in cycle.hooks.before_job:
        hook(gang)
    tasks = cycle.chunk(gang, trial)
    if not tasks:
        return False
    for check in cycle.hooks.over_capacity:
        problem = check(gang.job, tasks)
        if problem is not None:
            if not trial:
                cycle.problems.setdefault(gang.job.key, []).append(problem)
            return False
    return place_chunk(cycle, gang, tasks, rows, trial)


def place_chunk(cycle: Cycle, gang: Gang, tasks: list[Task], rows: Rows, trial: bool) -> bool:
    """Place some tasks of a gang, whatever its queue says."""
    if not gang.tree.simple or gang.tree.constrained or cycle.hooks.subsets:
        return _Placing(cycle, gang, trial).place_set(0, tasks, rows)
    if len(tasks) == 1:
        # What nearly every job is: nothing to undo where its one task finds no place.
        return _place_tasks(cycle, gang, tasks, rows, trial)
    point = cycle.transaction.checkpoint()
    if _place_tasks(cycle, gang, tasks, rows, trial):
        return True
    cycle.transaction.rollback(point)
    return False


@dataclass(slots=True)
class _Placing:
    """Places a tree of subgroups, each on the node sets that its constraint allows."""

    cycle: Cycle
    gang: Gang
    trial: bool

    def place_set(self, index: int, tasks: list[Task], rows: Rows) -> bool:
        if not tasks:
            return True
        node = self.gang.tree.sets[index]
        leaves = sorted({task.podset for task in tasks})
        for subset in self._subsets(Group(self.gang, node.name, node.constraint, leaves, tasks), rows):
            point = self.cycle.transaction.checkpoint()
            if self._place_members(index, tasks, subset):
                return True
            self.cycle.transaction.rollback(point)
        return False

    def _place_members(self, index: int, tasks: list[Task], rows: Rows) -> bool:
        for is_set, child in self.gang.members(index):
            if is_set:
                leaves = set(self.gang.tree.podsets_under(child))
                if not self.place_set(child, [task for task in tasks if task.podset in leaves], rows):
                    return False
                continue
            own = [task for task in tasks if task.podset == child]
            if own and not self._place_podset(child, own, rows):
                return False
        return True

    def _place_podset(self, leaf: int, tasks: list[Task], rows: Rows) -> bool:
        podset = self.gang.tree.podsets[leaf]
        for subset in self._subsets(Group(self.gang, podset.name, podset.constraint, [leaf], tasks), rows):
            point = self.cycle.transaction.checkpoint()
            if _place_tasks(self.cycle, self.gang, tasks, subset, self.trial):
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


def _place_tasks(cycle: Cycle, gang: Gang, tasks: list[Task], rows: Rows, trial: bool) -> bool:
    """Place tasks of one subgroup; on failure say why, unless it is a trial."""
    number = 0
    for run in [tasks] if len(tasks) == 1 else _runs(tasks, cycle.state.social):
        placed = _place_run(cycle, run, rows, trial)
        number += placed
        if placed < len(run):
            if not trial:
                problem = no_room(cycle, gang, tasks[number], number, rows)
                cycle.problems.setdefault(gang.job.key, []).append(problem)
            return False
    return True


def _place_run(cycle: Cycle, tasks: list[Task], rows: Rows, trial: bool) -> int:
    """Place tasks of one class; how many found a place."""
    first = tasks[0]
    plain = can_fill(cycle, first)
    if plain and len(tasks) > 1:
        return fill(cycle, tasks, rows, trial)
    if plain and not cycle.state.social and covers(cycle, first, rows, trial):
        return int(place_best(cycle, first, trial))
    if plain and trial:
        return int(_try_one(cycle, first, rows))
    for number, task in enumerate(tasks):
        if not place(cycle, task, rows, trial):
            return number
    return len(tasks)


def _try_one(cycle: Cycle, task: Task, rows: Rows) -> bool:
    """Place one task in a trial; what just failed for its class fails again while nothing has changed."""
    known = cycle.refused
    key = (task.cls.id, cycle.apart(task))
    version, where = known.get(key, (-1, None))
    if version == cycle.transaction.version and where is rows and not cycle.state.social:
        return False
    if place(cycle, task, rows, trial=True):
        return True
    known[key] = (cycle.transaction.version, rows)
    return False


def _runs(tasks: list[Task], social: bool) -> list[list[Task]]:
    """Neighbours of one class, together; where rules of others are about labels, also of the same labels."""
    return [list(run) for _, run in groupby(tasks, key=_alike if social else _class_of)]


def _alike(task: Task) -> tuple[int, str, list[tuple[str, str]]]:
    return (*_class_of(task), sorted(task.spec.labels.items()))


def _class_of(task: Task) -> tuple[int, str]:
    return (task.cls.id, task.spec.nominated_node)
