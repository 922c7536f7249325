"""The order in which a trial places jobs: that of all waiting jobs, although only a few of them are of interest.

Queues without jobs of interest are dropped once they cannot change the order of the rest. That is so when no sibling of
their ancestors holds such a job.
"""

from __future__ import annotations

from collections.abc import Iterator

from spinney.scheduler.share.job_order import JobOrder
from spinney.scheduler.share.sorted_jobs import Pool
from spinney.scheduler.state.gangs import Gang


class TrialOrder:
    """Yield the jobs of interest in the order of all jobs."""

    def __init__(self, waiting: Pool, some: dict[str, Gang]) -> None:
        self.queues = waiting.cycle.queues
        self.some = some
        # How many jobs of interest each queue has, with all below it; and which leaves have any.
        self.interest: dict[int, int] = {}
        self.leaves: dict[int, int] = {}
        for gang in some.values():
            self._count(gang.job.queue, 1)
        # Queues with a rival: what is below them changes the order even without jobs of interest.
        contested = {number for number in self.interest if self._has_rival(number)}
        numbers = [
            number for number in waiting.sorted if number in self.leaves or self._idle_top(number)[1] in contested
        ]
        self.order = JobOrder.of_pool(
            waiting, numbers, lambda job: job.pending > 0 and job.key not in some, some.values()
        )

    def _count(self, leaf: int, change: int) -> None:
        for number in self.queues.path[leaf]:
            self.interest[number] = self.interest.get(number, 0) + change
        self.leaves[leaf] = self.leaves.get(leaf, 0) + change
        if not self.leaves[leaf]:
            del self.leaves[leaf]

    def _idle_top(self, leaf: int) -> tuple[int, int]:
        """Return the highest queue above a leaf without jobs of interest, and its parent."""
        top = leaf
        for number in self.queues.path[leaf]:
            if self.interest.get(number, 0):
                return top, number
            top = number
        return top, -1

    def _has_rival(self, queue: int) -> bool:
        for number in self.queues.path[queue]:
            parent = self.queues.parent[number]
            siblings = self.queues.children[parent] if parent >= 0 else self.queues.roots
            if any(sibling != number and self.interest.get(sibling, 0) for sibling in siblings):
                return True
        return False

    def __iter__(self) -> Iterator[Gang]:
        while self.leaves:
            if len(self.leaves) == 1:
                yield from self._rest()
                return
            gang = self.order.pop()
            if self.some.get(gang.job.key) is not gang:
                continue
            leaf = gang.job.queue
            self._count(leaf, -1)
            if leaf not in self.leaves:
                top, parent = self._idle_top(leaf)
                if parent < 0 or not self._has_rival(parent):
                    self.order.drop(top)
            yield gang

    def _rest(self) -> Iterator[Gang]:
        """Yield the rest when a single queue holds it: its own order is enough."""
        (leaf,) = self.leaves
        line, left = self.order.line(leaf), self.leaves[leaf]
        assert line is not None
        while left:
            gang, _ = line.pop_extra()
            if self.some.get(gang.job.key) is gang:
                left -= 1
                yield gang
