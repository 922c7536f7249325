"""The order of jobs: sorted jobs in each queue, and a heap of queues at each level above."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Head
from spinney.scheduler.share.sorted_jobs import Line, Pool, job_key
from spinney.scheduler.state.gangs import Gang, Job
from spinney.scheduler.state.tasks import NOTHING, Triple


class _Queue:
    """A queue in the order, with its jobs if it is a leaf, else with its queues."""

    __slots__ = ("head", "line", "number", "queues", "stale")

    def __init__(self, number: int, line: Line | None) -> None:
        self.number = number
        self.line = line
        self.queues: list[_Queue] = []
        # Whether its position among its siblings must be checked again.
        self.stale = False
        # What it is compared by, cached until it changes.
        self.head: Head | None = None


class JobOrder:
    """Return jobs in the order they are served; victims in reverse."""

    def __init__(self, cycle: Cycle, gangs: Iterable[Gang] = (), victims: bool = False) -> None:
        self.cycle = cycle
        self.victims = victims
        self._roots: list[_Queue] = []
        self._nodes: dict[int, _Queue] = {}
        # What jobs that were returned as victims hold, by queue.
        self._taken: dict[int, Triple] = {}
        self._pushed = 0
        for gang in gangs:
            self.push(gang)

    @staticmethod
    def of_jobs(cycle: Cycle, jobs: Iterable[Job], depth: int | None) -> JobOrder:
        """Return the order of jobs to serve; a depth limits the jobs of each queue."""
        if depth is None:
            return JobOrder(cycle, jobs)
        by_queue: dict[int, list[Job]] = {}
        for job in jobs:
            by_queue.setdefault(job.queue, []).append(job)
        best = [sorted(queue, key=lambda job: job_key(cycle, job))[:depth] for queue in by_queue.values()]
        return JobOrder(cycle, [job for queue in best for job in queue])

    @staticmethod
    def of_pool(
        pool: Pool, queues: Iterable[int], accept: Callable[[Job], bool], more: Iterable[Gang] = ()
    ) -> JobOrder:
        """Return the order of accepted jobs of a pool in some queues, and of more jobs that are not in it."""
        order = JobOrder(pool.cycle, victims=pool.victims)
        extra: dict[int, list[Gang]] = {}
        for gang in more:
            extra.setdefault(gang.job.queue, []).append(gang)
        for number in dict.fromkeys([*queues, *extra]):
            line = Line(pool.cycle, pool.victims, pool.sorted.get(number, []), pool.keys, accept)
            for gang in extra.get(number, ()):
                order._pushed += 1
                line.push(gang, order._pushed)
            if line.head() is not None:
                order._add(_Queue(number, line))
                order._mark(number)
        return order

    def drop(self, number: int) -> None:
        """Remove a queue with all below it."""
        node = self._nodes.pop(number, None)
        if node is None:
            return
        queues, parent = self._beside(number), self.cycle.queues.parent[number]
        rest = [sibling for sibling in queues if sibling is not node]
        queues.clear()
        for sibling in rest:
            push(queues, sibling, self._before)
        if parent < 0:
            return
        for above in self.cycle.queues.path[parent]:
            self._nodes[above].head = None
        if not rest:
            self.drop(parent)

    def line(self, number: int) -> Line | None:
        """The line of jobs of one queue."""
        node = self._nodes.get(number)
        return node.line if node is not None else None

    def __bool__(self) -> bool:
        return bool(self._roots)

    def push(self, gang: Gang) -> None:
        """Add a job."""
        number = gang.job.queue
        leaf = self._nodes.get(number)
        line = leaf.line if leaf is not None else Line(self.cycle, self.victims, [], {}, anyone)
        assert line is not None
        self._pushed += 1
        line.push(gang, self._pushed)
        if leaf is None:
            self._add(_Queue(number, line))
        self._mark(number)

    def _beside(self, number: int) -> list[_Queue]:
        """The heap that a queue is in, with its siblings."""
        parent = self.cycle.queues.parent[number]
        return self._nodes[parent].queues if parent >= 0 else self._roots

    def _add(self, node: _Queue) -> None:
        """Add a queue, then its missing ancestors: each is judged by what is below it."""
        self._nodes[node.number] = node
        parent = self.cycle.queues.parent[node.number]
        if parent < 0:
            push(self._roots, node, self._before)
        elif parent in self._nodes:
            push(self._nodes[parent].queues, node, self._before)
        else:
            above = _Queue(parent, None)
            above.queues.append(node)
            self._add(above)

    def _mark(self, number: int) -> None:
        """Mark a queue and its ancestors as changed."""
        for above in self.cycle.queues.path[number]:
            node = self._nodes[above]
            node.stale = True
            node.head = None

    def pop(self) -> Gang:
        """Remove and return the next job."""
        number, line = self._leaf()
        gang, held = line.pop()
        if self.victims:
            taken = self._taken.get(number, NOTHING)
            self._taken[number] = (taken[0] + held[0], taken[1] + held[1], taken[2] + held[2])
        if line.head() is None:
            self._shrink(number)
        else:
            self._mark(number)
        return gang

    def _leaf(self) -> tuple[int, Line]:
        """Return the leaf queue that is next, and its jobs."""
        queues = self._roots
        while True:
            node = queues[0]
            if node.stale:
                if len(queues) > 1:
                    sink(queues, len(queues), self._before)
                node.stale = False
            elif node.line is not None:
                return node.number, node.line
            else:
                queues = node.queues

    def _shrink(self, number: int) -> None:
        """Remove an empty queue, and ancestors that become empty."""
        pop(self._beside(number), self._before)
        del self._nodes[number]
        parent = self.cycle.queues.parent[number]
        if parent < 0:
            return
        if self._nodes[parent].queues:
            self._mark(parent)
        else:
            self._shrink(parent)

    def _before(self, left: _Queue, right: _Queue) -> bool:
        left_head = left.head or self._head(left)
        if left_head is None:
            return not self.victims
        right_head = right.head or self._head(right)
        if right_head is None:
            return self.victims
        first = self._compare(left_head, right_head)
        return not first if self.victims else first

    def _compare(self, first: Head, second: Head) -> bool:
        for order in self.cycle.hooks.queue_orders:
            answer = order(first, second)
            if answer:
                return answer < 0
        queues, left, right = self.cycle.queues, first.queue, second.queue
        return (queues.created[left], queues.names[left]) < (queues.created[right], queues.names[right])

    def _head(self, node: _Queue) -> Head | None:
        """Return what a queue is compared by; None if it is empty."""
        leaf = node
        while leaf.line is None:
            if not leaf.queues:
                return None
            leaf = leaf.queues[0]
        first = leaf.line.head()
        if first is None:
            return None
        gang, held = first
        if self.victims:
            taken = self._taken.get(leaf.number, NOTHING)
            node.head = Head(node.number, None, (taken[0] + held[0], taken[1] + held[1], taken[2] + held[2]))
        else:
            node.head = Head(node.number, gang, held)
        return node.head


def anyone(_: Job) -> bool:
    """Accept every job."""
    return True


T = TypeVar("T")
# Whether one thing comes before another.
Before = Callable[[T, T], bool]


def push(items: list[T], item: T, before: Before[T]) -> None:
    """Add an item."""
    child = len(items)
    items.append(item)
    while child > 0:
        parent = (child - 1) // 2
        if not before(items[child], items[parent]):
            break
        items[parent], items[child] = items[child], items[parent]
        child = parent


def pop(items: list[T], before: Before[T]) -> T:
    """Remove and return the first item."""
    last = len(items) - 1
    items[0], items[last] = items[last], items[0]
    sink(items, last, before)
    return items.pop()


def sink(items: list[T], size: int, before: Before[T]) -> None:
    """Move the first of some items down to its place."""
    parent = 0
    while (child := 2 * parent + 1) < size:
        if child + 1 < size and before(items[child + 1], items[child]):
            child += 1
        if not before(items[child], items[parent]):
            break
        items[parent], items[child] = items[child], items[parent]
        parent = child
