"""All nodes in the order that tasks of one class prefer; moves update only the nodes they change."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.place.bulk_placement import allowed_rows, steady_scores
from spinney.scheduler.place.task_placement import free, holds
from spinney.scheduler.state.tasks import CPU, GPU, Task

# Negative steady score, whether tasks must wait, what is left, position by name, row.
Entry = tuple[float, bool, float, int, int]
# Outdated entries in the heap that are tolerated for each valid one.
SLACK = 4


class Ranking:
    """All nodes for one class, best first; only rows that changed are looked at again."""

    def __init__(self, cycle: Cycle, task: Task) -> None:
        nodes, rows = cycle.nodes, cycle.all_rows
        self.cycle = cycle
        self.cls = task.cls
        self.column = CPU if task.cls.cpu_only else GPU
        # Lists: faster than arrays for one row at a time.
        self.steady: list[float | None] = [None] * len(nodes.live)
        allowed = allowed_rows(cycle, task, rows)
        for row, score in zip(rows[allowed].tolist(), steady_scores(cycle, task, rows)[allowed].tolist(), strict=True):
            self.steady[row] = score
        self.rank: list[int] = nodes.rank.tolist()
        self.seen = len(nodes.touched)
        self.sharing = cycle.state.gpus.changes
        self.current: dict[int, Entry] = {}
        fits = holds(self.cls, free(cycle, rows)) & allowed
        for row in rows[fits].tolist():
            self._look(row)
        self.heap: list[Entry] = list(self.current.values())
        heapify(self.heap)

    def stale(self) -> bool:
        """Whether shared GPUs changed what tasks without whole GPUs prefer."""
        return not self.cls.gpu.whole and self.sharing != self.cycle.state.gpus.changes

    def best(self) -> tuple[int, bool] | None:
        """Return the best node and whether it has room now; None if no node has room."""
        touched, heap = self.cycle.nodes.touched, self.heap
        if self.seen < len(touched):
            changed = set(touched[self.seen :])
            self.seen = len(touched)
            for row in changed:
                entry = self._look(row)
                if entry is not None:
                    heappush(heap, entry)
            if len(heap) > SLACK * (len(self.current) + 16):
                heap[:] = self.current.values()
                heapify(heap)
        while heap:
            entry = heap[0]
            if self.current.get(entry[4]) is entry:
                return entry[4], not entry[1]
            heappop(heap)
        return None

    def _look(self, row: int) -> Entry | None:
        """Update the entry of a node, and return it if it is new."""
        steady = self.steady[row]
        if steady is None:
            return None
        nodes, now = self.cycle.nodes, True
        idle, releasing = nodes.idle[row].tolist(), nodes.releasing[row].tolist()
        for need, left, later in zip(self.cls.needs, idle, releasing, strict=True):
            if need > left + later:
                self.current.pop(row, None)
                return None
            now = now and need <= left
        entry = (-steady, not now, idle[self.column] + releasing[self.column], self.rank[row], row)
        if self.current.get(row) == entry:
            return None
        self.current[row] = entry
        return entry


class Rankings:
    """Rankings of all nodes by class, made on first use."""

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        self._by_class: dict[tuple[int, Hashable], Ranking] = {}

    def best(self, task: Task) -> tuple[int, bool] | None:
        """Return the best node for a task and whether it has room now; None if no node has room."""
        key = (task.cls.id, self.cycle.placement_key(task))
        ranking = self._by_class.get(key)
        if ranking is None or ranking.stale():
            ranking = self._by_class[key] = Ranking(self.cycle, task)
        return ranking.best()
