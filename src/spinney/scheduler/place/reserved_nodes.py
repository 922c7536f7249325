"""The choice of nodes to reserve for a gang: those that are nearest to having room for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from spinney.scheduler.bisection import smallest
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.place.bulk_placement import capacity
from spinney.scheduler.place.placer import Placers
from spinney.scheduler.place.reservations import ActiveReservation
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.next_tasks import next_tasks
from spinney.scheduler.state.nodes import Mask, Nodes, Rows
from spinney.scheduler.state.tasks import Task, Vector


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """Nodes that hold a gang once others have left, and the deadline that it waits for; 0 for none."""

    rows: frozenset[int]
    starts: float


def choose_nodes(
    cycle: Cycle, reservation: ActiveReservation, guests: list[Task], taken: set[int]
) -> NodeChoice | None:
    """The nodes to keep for a gang, none of them taken; None if it fits nowhere.

    First those that have all the room they can have (guests count as gone), then those kept already, then the emptiest,
    and last those that were kept in vain. A kept node is given up only for one that is ready, so what the gang waits
    for shrinks with every task that ends.
    """
    job, tasks, nodes = reservation.job, next_tasks(reservation.job), cycle.nodes
    if any((task.cls.request > cycle.sizes.largest_node).any() for task in tasks if not task.cls.shared):
        return None
    rows = cycle.all_rows[~_flags(nodes, taken)[cycle.all_rows]]
    empty = np.maximum(nodes.allocatable - nodes.foreign, 0.0)
    if not tasks or not len(rows) or _too_small(cycle, tasks, rows, empty):
        return None
    free = nodes.idle + nodes.releasing
    for guest in guests:
        free[guest.node] += guest.cls.request
    order = rows[_soonest_first(reservation, tasks, empty[rows], free[rows], rows)]
    placed = _EmptiedCluster(cycle, job, tasks, empty).smallest(order)
    if placed is None:
        return None
    starts = max(_free_at(cycle, row, need, free[row], guests) for row, need in placed.items())
    return NodeChoice(frozenset(placed), starts)


def _flags(nodes: Nodes, rows: set[int]) -> Mask:
    flags = np.zeros(len(nodes.live), dtype=np.bool_)
    flags[list(rows)] = True
    return flags


def _too_small(cycle: Cycle, tasks: list[Task], rows: Rows, empty: Vector) -> bool:
    """Whether empty nodes are too few for the tasks of some class."""
    for cls, count in Counter(task.cls for task in tasks).items():
        allowed = rows[cycle.class_mask(cls)[rows]]
        if not len(allowed) or (not cls.shared and capacity(cls.request, empty[allowed]).sum() < count):
            return True
    return False


def _soonest_first(reservation: ActiveReservation, tasks: list[Task], empty: Vector, free: Vector, rows: Rows) -> Rows:
    largest = np.max([task.cls.request for task in tasks], axis=0)
    requested = largest > 0
    whole, left, size = empty[:, requested], free[:, requested], largest[requested]
    used = np.where(whole > 0, (whole - left) / np.where(whole > 0, whole, 1.0), 0.0).max(axis=1)
    ready = np.floor((left / size).min(axis=1)) >= np.floor((whole / size).min(axis=1))
    held, in_vain = np.isin(rows, list(reservation.rows)), np.isin(rows, list(reservation.in_vain))
    order: Rows = np.lexsort((np.round(used, 6), ~held, in_vain, ~ready))
    return order


@dataclass(slots=True)
class _EmptiedCluster:
    """The cluster as if all pods of this scheduler had left; every trial on it is undone."""

    cycle: Cycle
    job: Job
    tasks: list[Task]
    empty: Vector

    def smallest(self, order: Rows) -> dict[int, Vector] | None:
        """Return what the gang takes of each node, on as few nodes from the front of an order as hold it."""
        count = smallest(lambda size: self._placed(order[:size]) is not None, len(order))
        return self._placed(order[:count]) if count else None

    def _placed(self, rows: Rows) -> dict[int, Vector] | None:
        cycle, nodes = self.cycle, self.cycle.nodes
        problems = list(cycle.result.problems.get(self.job.key, ()))
        point = cycle.transaction.checkpoint()
        cycle.transaction.set(nodes, "releasing", self.empty - nodes.idle)
        cycle.hooks.presence.append(self._stays)
        try:
            if not cycle.get(Placers).trial.place_tasks(self.job, self.tasks, rows):
                return None
            taken: dict[int, Vector] = {}
            for task in self.tasks:
                taken[task.node] = taken.get(task.node, np.zeros(self.empty.shape[1])) + task.cls.request
            return taken
        finally:
            cycle.hooks.presence.remove(self._stays)
            cycle.transaction.rollback(point)
            cycle.result.problems[self.job.key] = problems

    def _stays(self, task: Task) -> bool:
        return task.job is None or task.job is self.job


def _free_at(cycle: Cycle, row: int, need: Vector, free: Vector, guests: list[Task]) -> float:
    """Return when a node has room if tasks run to their deadlines; 0 if no deadline decides."""
    leaving = {guest.key for guest in guests}
    ends: list[tuple[float, Vector]] = []
    for task in cycle.state.tasks_on(row):
        if task.key in leaving or not task.spec.job:
            continue
        if task.spec.ends is None:
            free = free + task.cls.request
        else:
            ends.append((task.spec.ends, task.cls.request))
    for end, amount in sorted(ends, key=lambda entry: entry[0]):
        if (need <= free).all():
            break
        free = free + amount
        if (need <= free).all():
            return end
    return 0.0
