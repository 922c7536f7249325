"""Which job is next: a heap of jobs in each queue, and a heap of queues at each level above."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

from spinney.scheduler.cycle import Cycle, Head
from spinney.scheduler.gangs import Gang
from spinney.scheduler.tasks import Triple

T = TypeVar("T")


class Heap(Generic[T]):
    """A binary heap whose order may change while things are in it; `fix` puts the first item where it belongs."""

    def __init__(self, before: Callable[[T, T], bool]) -> None:
        self.items: list[T] = []
        self.before = before

    def push(self, item: T) -> None:
        """Put an item in."""
        self.items.append(item)
        self._up(len(self.items) - 1)

    def pop(self) -> T:
        """Take the first item out."""
        items = self.items
        last = len(items) - 1
        items[0], items[last] = items[last], items[0]
        self._down(0, last)
        return items.pop()

    def fix(self) -> None:
        """Sink the first item to its place."""
        self._down(0, len(self.items))

    def _up(self, child: int) -> None:
        items = self.items
        while child > 0:
            parent = (child - 1) // 2
            if not self.before(items[child], items[parent]):
                break
            items[parent], items[child] = items[child], items[parent]
            child = parent

    def _down(self, parent: int, size: int) -> None:
        items = self.items
        while (child := 2 * parent + 1) < size:
            if child + 1 < size and self.before(items[child + 1], items[child]):
                child += 1
            if not self.before(items[child], items[parent]):
                break
            items[parent], items[child] = items[child], items[parent]
            parent = child


class _Reversed:
    """A sort key that turns the order round."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.key < self.key)


class _Queue:
    """A queue in the order: with jobs if it is a leaf, else with queues."""

    __slots__ = ("jobs", "number", "parent", "queues", "stale")

    def __init__(self, number: int, queues: Heap[_Queue] | None) -> None:
        self.number = number
        self.parent: _Queue | None = None
        self.queues = queues
        self.jobs: list[tuple[Any, int, Gang]] = []
        self.stale = False

    def empty(self) -> bool:
        return not (self.queues.items if self.queues is not None else self.jobs)


class JobOrder:
    """Hands out jobs, the most deserving first; for victims, the least deserving first."""

    def __init__(self, cycle: Cycle, gangs: Iterable[Gang], victims: bool = False, depth: int | None = None) -> None:
        self.cycle = cycle
        self.victims = victims
        self._roots: Heap[_Queue] = Heap(self._before)
        self._nodes: dict[int, _Queue] = {}
        # What jobs already handed out as victims hold, by queue.
        self._taken: dict[int, Triple] = {}
        self._pushed = 0
        self._key_of = self._victim_key if victims else self._job_key
        if depth is None:
            for gang in gangs:
                self.push(gang)
        else:
            self._push_best(gangs, depth)

    def _push_best(self, gangs: Iterable[Gang], depth: int) -> None:
        by_queue: dict[int, list[Gang]] = {}
        for gang in gangs:
            by_queue.setdefault(gang.job.queue, []).append(gang)
        for members in by_queue.values():
            for gang in sorted(members, key=self._key_of)[:depth]:
                self.push(gang)

    def __bool__(self) -> bool:
        return bool(self._roots.items)

    def _job_key(self, gang: Gang) -> Any:
        job = gang.job
        return (*(key(gang) for key in self.cycle.hooks.job_keys), job.created, job.key)

    def _victim_key(self, gang: Gang) -> Any:
        return _Reversed(self._job_key(gang))

    def push(self, gang: Gang) -> None:
        """Put a job in."""
        number = gang.job.queue
        leaf = self._nodes.get(number)
        fresh = leaf is None
        if leaf is None:
            leaf = self._nodes[number] = _Queue(number, None)
        self._pushed += 1
        heappush(leaf.jobs, (self._key_of(gang), self._pushed, gang))
        if fresh:
            self._link(leaf)
        self._mark(leaf)

    def _link(self, node: _Queue) -> None:
        parent_number = self.cycle.queues.parent[node.number]
        if parent_number < 0:
            self._roots.push(node)
            return
        parent = self._nodes.get(parent_number)
        fresh = parent is None
        if parent is None:
            parent = self._nodes[parent_number] = _Queue(parent_number, Heap(self._before))
        node.parent = parent
        assert parent.queues is not None
        parent.queues.push(node)
        if fresh:
            self._link(parent)

    def _mark(self, node: _Queue | None) -> None:
        while node is not None:
            node.stale = True
            node = node.parent

    def pop(self) -> Gang:
        """Take the next job out."""
        leaf = self._leaf(self._roots)
        _, _, gang = heappop(leaf.jobs)
        if self.victims:
            held, taken = gang.charged(), self._taken.get(leaf.number, (0.0, 0.0, 0.0))
            self._taken[leaf.number] = (taken[0] + held[0], taken[1] + held[1], taken[2] + held[2])
        self._shrink(leaf)
        return gang

    def _leaf(self, heap: Heap[_Queue]) -> _Queue:
        while True:
            node = heap.items[0]
            if node.stale:
                heap.fix()
                node.stale = False
                continue
            if node.queues is None:
                return node
            heap = node.queues

    def _shrink(self, node: _Queue) -> None:
        if not node.empty():
            self._mark(node)
            return
        (node.parent.queues if node.parent and node.parent.queues else self._roots).pop()
        del self._nodes[node.number]
        if node.parent is not None:
            self._shrink(node.parent)

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
        gang = node.jobs[0][2]
        if not self.victims:
            return Head(queue, gang, (0.0, 0.0, 0.0))
        held, taken = gang.charged(), self._taken.get(node.number, (0.0, 0.0, 0.0))
        return Head(queue, None, (taken[0] + held[0], taken[1] + held[1], taken[2] + held[2]))
