"""Jobs sorted once for a whole action: those that wait, and those that may be evicted."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.state.gangs import Gang, Job
from spinney.scheduler.state.tasks import NOTHING, Triple


def job_key(cycle: Cycle, gang: Gang) -> Any:
    """Return the sort key of a job in its queue: smaller is served earlier, and is a victim later."""
    job = gang.job
    return (*[key(gang) for key in cycle.hooks.job_keys], job.created, job.key)


class Pool:
    """Jobs by queue, in the order they are served; updated when decisions change jobs."""

    def __init__(self, cycle: Cycle, wanted: Callable[[Cycle, Job], bool], victims: bool) -> None:
        self.cycle = cycle
        self.victims = victims
        self._wanted = wanted
        self.sorted: dict[int, list[Job]] = {}
        # The sort key of each job, and the keys of each queue's sorted jobs.
        self.keys: dict[str, Any] = {}
        self._lines: dict[int, list[Any]] = {}
        for job in cycle.state.jobs.values():
            if wanted(cycle, job):
                self.sorted.setdefault(job.queue, []).append(job)
                self.keys[job.key] = job_key(cycle, job)
        for queue, jobs in self.sorted.items():
            jobs.sort(key=lambda job: self.keys[job.key])
            self._lines[queue] = [self.keys[job.key] for job in jobs]

    def changed(self, jobs: Iterable[Job]) -> None:
        """Move changed jobs to their new position, or remove them."""
        for job in jobs:
            old_key = self.keys.pop(job.key, None)
            key = job_key(self.cycle, job) if self._wanted(self.cycle, job) else None
            if old_key is not None:
                line = self._lines[job.queue]
                place = bisect_left(line, old_key)
                del self.sorted[job.queue][place], line[place]
            if key is not None:
                self.keys[job.key] = key
                line = self._lines.setdefault(job.queue, [])
                place = bisect_left(line, key)
                self.sorted.setdefault(job.queue, []).insert(place, job)
                line.insert(place, key)


class Line:
    """The jobs of one queue waiting to be handed out: a sorted list, and a heap of those put in besides.

    Victims are handed out from the end of the list.
    """

    __slots__ = ("_accept", "_at", "_head", "_jobs", "_keys", "cycle", "extra", "victims")

    def __init__(
        self, cycle: Cycle, victims: bool, jobs: list[Job], keys: dict[str, Any], accept: Callable[[Job], bool]
    ) -> None:
        self.cycle = cycle
        self.victims = victims
        self._jobs = jobs
        self._keys = keys
        self._accept = accept
        self._at = 0
        self.extra: list[tuple[Any, int, Gang]] = []
        self._head: tuple[Gang, Triple] | None = None

    def push(self, gang: Gang, number: int) -> None:
        """Add a job."""
        key = job_key(self.cycle, gang)
        heappush(self.extra, (Reversed(key) if self.victims else key, number, gang))
        self._head = None

    def _first(self) -> Job | None:
        jobs, accept = self._jobs, self._accept
        while self._at < len(jobs):
            job = jobs[-1 - self._at] if self.victims else jobs[self._at]
            if accept(job):
                return job
            self._at += 1
        return None

    def _extra_first(self, job: Job) -> bool:
        key = self._keys[job.key]
        return bool(self.extra[0][0] < (Reversed(key) if self.victims else key))

    def head(self) -> tuple[Gang, Triple] | None:
        """Return the next job, and what it holds if it is a victim; None if none is left."""
        if self._head is None:
            job = self._first()
            gang: Gang | None = job
            if self.extra and (job is None or self._extra_first(job)):
                gang = self.extra[0][2]
            if gang is not None:
                self._head = (gang, gang.charged() if self.victims else NOTHING)
        return self._head

    def pop(self) -> tuple[Gang, Triple]:
        """Remove and return the next job."""
        head = self._head or self.head()
        if head is None:
            raise LookupError("nobody is left in the line")
        self._head = None
        if self.extra and self.extra[0][2] is head[0]:
            heappop(self.extra)
        else:
            self._at += 1
        return head

    def pop_extra(self) -> tuple[Gang, Triple]:
        """Remove and return the next of the added jobs."""
        self._head = None
        return heappop(self.extra)[2], NOTHING


class Reversed:
    """A sort key in reverse order."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Reversed) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)
