"""The resources that tasks hold of their nodes, idle or releasing by the status of the task."""

from __future__ import annotations

from operator import setitem

from spinney.scheduler.state import status as st
from spinney.scheduler.state.gpus import SharedGpus
from spinney.scheduler.state.nodes import Nodes
from spinney.scheduler.state.tasks import GPU, Task, Vector
from spinney.scheduler.state.undo_log import UndoLog


class Accounting:
    """Count tasks in the tables of nodes and of shared GPUs; with a log, changes can be undone."""

    def __init__(self, nodes: Nodes, gpus: SharedGpus) -> None:
        self.nodes = nodes
        self.gpus = gpus
        # How many of the tasks that share a claim are counted on a node row.
        self._claim_counts: dict[tuple[int, str], int] = {}

    def drop_node(self, row: int) -> None:
        """Forget the claims of a node that is gone: its row may become another node's."""
        for key in [key for key in self._claim_counts if key[0] == row]:
            del self._claim_counts[key]

    def drop_claim(self, claim: str) -> None:
        """Forget a claim that no task shares any more."""
        for key in [key for key in self._claim_counts if key[1] == claim]:
            del self._claim_counts[key]

    def track(self, task: Task, row: int, status: int, sign: int, log: UndoLog | None = None) -> None:
        """Count a task on a node (sign 1), or no longer (-1)."""
        nodes, cls = self.nodes, task.cls
        if log is not None:
            nodes.save(row, log)
        amounts = self._amounts(task, row, sign, log)
        if sign < 0:
            amounts = -amounts
        nodes.used_gpus[row] += amounts[GPU]
        if status == st.PIPELINED:
            nodes.releasing[row] -= amounts
        else:
            nodes.idle[row] -= amounts
            if status == st.RELEASING:
                nodes.releasing[row] += amounts
        if cls.shared:
            change = self.gpus.add if sign > 0 else self.gpus.remove
            for group in task.groups:
                change(row, group, cls, status, log)

    def track_many(self, task: Task, row: int, status: int, count: int, log: UndoLog) -> None:
        """Count many tasks like this one on a node; they share no GPU and no claim."""
        nodes = self.nodes
        nodes.save(row, log)
        amounts = count * self._amounts(task, row, 1, log)
        nodes.used_gpus[row] += amounts[GPU]
        (nodes.releasing if status == st.PIPELINED else nodes.idle)[row] -= amounts

    def shift(self, task: Task, before: int, after: int, log: UndoLog, count: int = 1) -> None:
        """Count a task under another status, or many like it if they share no GPU and no claim."""
        nodes, cls, row = self.nodes, task.cls, task.node
        if row < 0:
            # Its node is gone.
            return
        if cls.shared or cls.claims:
            self.track(task, row, before, -1, log)
            self.track(task, row, after, 1, log)
            return
        nodes.save(row, log)
        amounts = self._amounts(task, row, 1, log)
        (idle, releasing), (new_idle, new_releasing) = _taken(before), _taken(after)
        _add_times(nodes.idle[row], amounts, count * (new_idle - idle))
        _add_times(nodes.releasing[row], amounts, count * (new_releasing - releasing))

    def _amounts(self, task: Task, row: int, sign: int, log: UndoLog | None) -> Vector:
        """Return what a task takes of a node, without shared GPUs and resources that the node lacks."""
        cls = task.cls
        whole = self.nodes.complete[row] and not cls.unserved
        amounts = cls.request if whole else cls.request * self.nodes.has[row]
        if cls.shared or task.spec.reservation:
            amounts = amounts.copy()
            amounts[GPU] = 0.0
        elif cls.claims:
            amounts = amounts.copy()
            amounts[GPU] -= self._claimed_already(task, row, sign, log)
        return amounts

    def _claimed_already(self, task: Task, row: int, sign: int, log: UndoLog | None) -> float:
        """Return the devices of a task's shared claims that are already counted on the node."""
        counted = 0.0
        for claim in task.cls.claims:
            if not claim.shared:
                continue
            key = (row, claim.claim)
            holders = self._claim_counts.get(key, 0)
            if log is not None:
                log.record((setitem, self._claim_counts, key, holders))
            self._claim_counts[key] = holders + sign
            if holders > (0 if sign > 0 else 1):
                counted += claim.count
        return counted


def _taken(status: int) -> tuple[int, int]:
    """Return by how much a status changes idle and releasing resources."""
    if status == st.PIPELINED:
        return (0, -1)
    return (-1, 1) if status == st.RELEASING else (-1, 0)


def _add_times(books: Vector, amounts: Vector, times: int) -> None:
    """Add a multiple of amounts; factors 1 and -1 are common, and a sum is cheaper than a product."""
    if times == 1:
        books += amounts
    elif times == -1:
        books -= amounts
    elif times:
        books += times * amounts
