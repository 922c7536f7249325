"""Which job is next: a line of jobs in each queue, and a heap of queues at each level above."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from spinney.scheduler.cycle import Cycle, Head
from spinney.scheduler.gangs import Gang, Job
from spinney.scheduler.pools import Line, Pool, job_key
from spinney.scheduler.tasks import Triple

T = TypeVar("T")
Before = Callable[[T, T], bool]


class Heap(Generic[T]):
    """A binary heap whose order may change while things are in it; `fix` puts the first item where it belongs.

    It is told the order with every call and keeps none: an order that knows its heaps would never be freed at once.
    """

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[T] = []

    def push(self, item: T, before: Before[T]) -> None:
        """Put an item in."""
        items = self.items
        child = len(items)
        items.append(item)
        while child > 0:
            parent = (child - 1) // 2
            if not before(items[child], items[parent]):
                break
            items[parent], items[child] = items[child], items[parent]
            child = parent

    def pop(self, before: Before[T]) -> T:
        """Take the first item out."""
        items = self.items
        last = len(items) - 1
        items[0], items[last] = items[last], items[0]
        self._sink(last, before)
        return items.pop()

    def fix(self, before: Before[T]) -> None:
        """Sink the first item to its place."""
        self._sink(len(self.items), before)

    def _sink(self, size: int, before: Before[T]) -> None:
        items, parent = self.items, 0
        while (child := 2 * parent + 1) < size:
            if child + 1 < size and before(items[child + 1], items[child]):
                child += 1
            if not before(items[child], items[parent]):
                break
            items[parent], items[child] = items[child], items[parent]
            parent = child


class _Queue:
    """A queue in the order: with a line of jobs if it is a leaf, else with queues."""

    __slots__ = ("line", "number", "queues", "stale")

    def __init__(self, number: int, queues: Heap[_Queue] | None, line: Line | None) -> None:
        self.number = number
        self.queues = queues
        self.line = line
        self.stale = False

    def empty(self) -> bool:
        return not self.queues.items if self.queues is not None else self.line is None or self.line.empty()


class JobOrder:
    """Hands out jobs, the most deserving first; for victims, the least deserving first."""

    def __init__(self, cycle: Cycle, gangs: Iterable[Gang] = (), victims: bool = False) -> None:
        self.cycle = cycle
        self.victims = victims
        self._roots: Heap[_Queue] = Heap()
        self._nodes: dict[int, _Queue] = {}
        # What jobs already handed out as victims hold, by queue.
        self._taken: dict[int, Triple] = {}
        self._pushed = 0
        for gang in gangs:
            self.push(gang)

    @staticmethod
    def of_jobs(cycle: Cycle, jobs: Iterable[Job], depth: int | None) -> JobOrder:
        """Jobs to serve; with a depth only the first so many of each queue."""
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
        """The jobs of a pool that are accepted, in some queues, and more that are not in it."""
        order = JobOrder(pool.cycle, victims=pool.victims)
        extra: dict[int, list[Gang]] = {}
        for gang in more:
            extra.setdefault(gang.job.queue, []).append(gang)
        for number in dict.fromkeys([*queues, *extra]):
            line = Line(pool.cycle, pool.victims, pool.sorted.get(number, []), pool.keys, accept)
            for gang in extra.get(number, ()):
                order._pushed += 1
                line.push(gang, order._pushed)
            if not line.empty():
                node = order._nodes[number] = _Queue(number, None, line)
                order._link(node)
                order._mark(node)
        return order

    def drop(self, number: int) -> None:
        """Leave a queue out, with all below it."""
        node = self._nodes.pop(number, None)
        if node is None:
            return
        parent = self._parent(node)
        heap = self._heap(parent)
        rest = [one for one in heap.items if one is not node]
        heap.items = []
        for one in rest:
            heap.push(one, self._before)
        if parent is not None and not rest:
            self.drop(parent.number)

    def line(self, number: int) -> Line | None:
        """The line of jobs of one queue."""
        node = self._nodes.get(number)
        return node.line if node is not None else None

    def __bool__(self) -> bool:
        return bool(self._roots.items)

    def push(self, gang: Gang) -> None:
        """Put a job in."""
        number = gang.job.queue
        leaf = self._nodes.get(number)
        fresh = leaf is None
        if leaf is None:
            leaf = self._nodes[number] = _Queue(number, None, Line(self.cycle, self.victims, [], {}, _always))
        assert leaf.line is not None
        self._pushed += 1
        leaf.line.push(gang, self._pushed)
        if fresh:
            self._link(leaf)
        self._mark(leaf)

    def _parent(self, node: _Queue) -> _Queue | None:
        number = self.cycle.queues.parent[node.number]
        return self._nodes[number] if number >= 0 else None

    def _heap(self, parent: _Queue | None) -> Heap[_Queue]:
        return self._roots if parent is None or parent.queues is None else parent.queues

    def _link(self, node: _Queue) -> None:
        parent_number = self.cycle.queues.parent[node.number]
        if parent_number < 0:
            self._roots.push(node, self._before)
            return
        parent = self._nodes.get(parent_number)
        fresh = parent is None
        if parent is None:
            parent = self._nodes[parent_number] = _Queue(parent_number, Heap(), None)
        self._heap(parent).push(node, self._before)
        if fresh:
            self._link(parent)

    def _mark(self, node: _Queue) -> None:
        for number in self.cycle.queues.path[node.number]:
            self._nodes[number].stale = True

    def pop(self) -> Gang:
        """Take the next job out."""
        leaf = self._leaf(self._roots)
        assert leaf.line is not None
        gang, held = leaf.line.pop()
        if self.victims:
            taken = self._taken.get(leaf.number, (0.0, 0.0, 0.0))
            self._taken[leaf.number] = (taken[0] + held[0], taken[1] + held[1], taken[2] + held[2])
        self._shrink(leaf)
        return gang

    def _leaf(self, heap: Heap[_Queue]) -> _Queue:
        while True:
            node = heap.items[0]
            if node.stale:
                if len(heap.items) > 1:
                    heap.fix(self._before)
                node.stale = False
                continue
            if node.queues is None:
                return node
            heap = node.queues

    def _shrink(self, node: _Queue) -> None:
        if not node.empty():
            self._mark(node)
            return
        parent = self._parent(node)
        self._heap(parent).pop(self._before)
        del self._nodes[node.number]
        if parent is not None:
            self._shrink(parent)

    def _before(self, left: _Queue, right: _Queue) -> bool:
        if left.empty():
            return not self.victims
        if right.empty():
            return self.victims
        first = self._compare(left, right)
        return not first if self.victims else first

    def _compare(self, left: _Queue, right: _Queue) -> bool:
        one, other = self._head(left), self._head(right)
        for order in self.cycle.hooks.queue_orders:
            answer = order(one, other)
            if answer:
                return answer < 0
        queues = self.cycle.queues
        first = (queues.created[left.number], queues.names[left.number])
        return first < (queues.created[right.number], queues.names[right.number])

    def _head(self, node: _Queue) -> Head:
        queue = node.number
        while node.queues is not None:
            node = node.queues.items[0]
        assert node.line is not None
        gang, held = node.line.head()
        if not self.victims:
            return Head(queue, gang, held)
        taken = self._taken.get(node.number, (0.0, 0.0, 0.0))
        return Head(queue, None, (taken[0] + held[0], taken[1] + held[1], taken[2] + held[2]))


def _always(_: Job) -> bool:
    return True
