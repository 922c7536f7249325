"""Quick checks that a set of victims can be enough, made before a simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.place.free_gpus import FreeGpus, fitting
from spinney.scheduler.state.gangs import Gang
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.specs import Constraint
from spinney.scheduler.state.tasks import Task
from spinney.scheduler.victims.freed_gpus import Batch, FreedGpus, freed_gpus


class GpuFilter:
    """Check that the nodes with the most free GPUs hold the pending tasks one by one."""

    def __init__(self, cycle: Cycle, pending: list[Task]) -> None:
        self.cycle = cycle
        self.needs = sorted((task.cls.quota for task in pending), reverse=True)
        self.room = cycle.get(FreeGpus).gpus().copy()
        # Equal needs are simply counted; the count is kept up to date.
        self.size = self.needs[0] if self.needs[0] == self.needs[-1] else 0.0
        self.count = cycle.get(FreeGpus).count(self.size) if self.size else 0

    def add(self, batch: Batch) -> None:
        """Count the GPUs that victims free."""
        size, room = self.size, self.room
        for task in batch:
            row = task.node
            if row < 0:
                continue
            before = float(room[row])
            after = before + freed_gpus(self.cycle, task)
            room[row] = after
            if size:
                self.count += int(max(after // size, 0)) - int(max(before // size, 0))

    def add_short(self, freed: FreedGpus, batches: int) -> int:
        """Count the first batches that surely free too little, and return their number."""
        missing = len(self.needs) - self.count
        if not self.size or missing <= 0 or (freed.gpus % 1).any() or (self.room[freed.rows] % 1).any():
            return 0
        order = np.argsort(freed.rows, kind="stable")
        rows, gpus = freed.rows[order], freed.gpus[order]
        # What is free on each victim's row once it and all before it there are gone: whole numbers, so sums are exact.
        total = np.cumsum(gpus)
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        total += self.room[rows] - np.repeat((total - gpus)[starts], np.diff(starts, append=len(rows)))
        gained = fitting(total, self.size) - fitting(total - gpus, self.size)
        held = np.cumsum(np.bincount(freed.batch[order], gained, batches))
        short = int(np.searchsorted(held, missing))
        if short:
            self.count += int(held[short - 1])
            counted = freed.batch < short
            np.add.at(self.room, freed.rows[counted], freed.gpus[counted])
        return short

    def possible(self) -> bool:
        """Whether the nodes with the most room can hold the tasks."""
        if not self.needs[0]:
            return True
        if self.size:
            return self.count >= len(self.needs)
        rooms = np.sort(self.room[self.cycle.all_rows])[::-1][: len(self.needs)]
        return fits_greedily(self.needs, rooms.tolist())


class TopologyFilter:
    """Check that the domains with the most free GPUs hold each group that must stay in one domain."""

    def __init__(self, cycle: Cycle, groups: list[tuple[Constraint, float]]) -> None:
        self.cycle = cycle
        self.needs: dict[tuple[str, str], list[float]] = {}
        for constraint, gpus in groups:
            self.needs.setdefault((constraint.topology, constraint.required), []).append(gpus)
        for needs in self.needs.values():
            needs.sort(reverse=True)
        spare = cycle.get(FreeGpus).gpus()
        self.room: dict[tuple[str, str], dict[str, float]] = {key: {} for key in self.needs}
        for row in cycle.all_rows:
            for key in self.needs:
                domain = self._domain(key, int(row))
                if domain:
                    self.room[key][domain] = self.room[key].get(domain, 0.0) + float(spare[row])

    def _domain(self, key: tuple[str, str], row: int) -> str:
        return self.cycle.nodes.spec(row).labels.get(key[1], "")

    @staticmethod
    def of(cycle: Cycle, gang: Gang) -> TopologyFilter | None:
        """The filter for a gang with required levels; None if it has none."""
        if not gang.tree.constrained:
            return None
        groups: list[tuple[Constraint, float]] = []
        for index, node in enumerate(gang.tree.sets):
            if node.constraint is not None and node.constraint.required:
                tasks = (task for leaf in gang.tree.podsets_under(index) for task in gang.tasks[leaf].values())
                groups.append((_resolved(cycle, node.constraint), sum(task.cls.quota for task in tasks)))
        return TopologyFilter(cycle, groups) if groups else None

    def add(self, batch: Batch) -> None:
        """Count the GPUs that victims free."""
        for task in batch:
            if task.node < 0:
                continue
            gpus = freed_gpus(self.cycle, task)
            for key, room in self.room.items():
                domain = self._domain(key, task.node)
                if domain:
                    room[domain] += gpus

    def possible(self) -> bool:
        """Whether the domains with the most room can hold the groups."""
        return all(
            fits_greedily(needs, sorted(self.room[key].values(), reverse=True)) for key, needs in self.needs.items()
        )


class NodeFilter:
    """Check that every pending task that selects nodes finds one with room or with victims."""

    def __init__(self, cycle: Cycle, selecting: list[Task], feasible: Rows) -> None:
        self.masks = [cycle.class_mask(task.cls) for task in selecting]
        self.rows = set(feasible.tolist())

    @staticmethod
    def of(cycle: Cycle, pending: list[Task], feasible: Rows) -> NodeFilter | None:
        """The filter for tasks that select nodes; None if none does."""
        selecting = [
            task
            for task in pending
            if task.cls.constraints.node_selector or task.cls.constraints.node_affinity is not None
        ]
        return NodeFilter(cycle, selecting, feasible) if selecting else None

    def add(self, batch: Batch) -> None:
        """Count the nodes of victims."""
        self.rows.update(task.node for task in batch if task.node >= 0)

    def possible(self) -> bool:
        """Whether every task has a node."""
        return all(any(mask[row] for row in self.rows) for mask in self.masks)


def _resolved(cycle: Cycle, constraint: Constraint) -> Constraint:
    """A constraint with its required level as a node label."""
    domains = cycle.state.domains(constraint.topology)
    if domains is None:
        return constraint
    return replace(constraint, required=domains.aliases.get(constraint.required, constraint.required))


def fits_greedily(needs: list[float], rooms: list[float]) -> bool:
    """Whether needs fit into rooms, both sorted from large to small, each into the first with space left."""
    taken = [0.0] * len(rooms)
    for need in needs:
        if need == 0:
            return True
        for number, room in enumerate(rooms):
            if room < need:
                return False
            if room - taken[number] >= need:
                taken[number] += need
                break
        else:
            return False
    return True
