"""Placing a gang: all of its next tasks, subgroup by subgroup, or nothing."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.scheduler.cycle import Cycle, Group
from spinney.scheduler.gangs import Gang
from spinney.scheduler.nodes import Rows
from spinney.scheduler.placement import place
from spinney.scheduler.refusals import no_room
from spinney.scheduler.tasks import Task


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
    return _Placing(cycle, gang, trial).place_set(0, tasks, rows)


@dataclass(frozen=True, slots=True)
class _Placing:
    cycle: Cycle
    gang: Gang
    trial: bool

    def place_set(self, index: int, tasks: list[Task], rows: Rows) -> bool:
        if not tasks:
            return True
        node = self.gang.tree.sets[index]
        leaves = sorted({task.podset for task in tasks})
        for subset in self._subsets(Group(self.gang, node.name, node.constraint, leaves, tasks), rows):
            point = self.cycle.moves.checkpoint()
            if self._place_members(index, tasks, subset):
                return True
            self.cycle.moves.rollback(point)
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
            point = self.cycle.moves.checkpoint()
            if self._place_tasks(tasks, subset):
                return True
            self.cycle.moves.rollback(point)
        return False

    def _place_tasks(self, tasks: list[Task], rows: Rows) -> bool:
        for number, task in enumerate(tasks):
            if not place(self.cycle, task, rows, self.trial):
                if not self.trial:
                    problem = no_room(self.cycle, self.gang, task, number, rows)
                    self.cycle.problems.setdefault(self.gang.job.key, []).append(problem)
                return False
        return True

    def _subsets(self, group: Group, rows: Rows) -> list[Rows]:
        """The node sets to try for a group, in order."""
        sets = [rows]
        for hook in self.cycle.hooks.subsets:
            sets = [found for one in sets for found in hook(group, one)]
        return sets
