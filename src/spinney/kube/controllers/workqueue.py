"""The work queue of a controller: each key waits at most once and has at most one worker."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from spinney.kube.chance import Chance

K = TypeVar("K", bound=Hashable)


class Queue(Generic[K]):
    """Keys to work on, first come first served.

    A key that is added while it waits waits once; one that is added while it is worked on is handed out again after
    `done`. So a worker always sees the newest state, and no key has two workers.
    """

    def __init__(self, chance: Chance, *, first_delay: float = 0.005, longest_delay: float = 60.0) -> None:
        self._chance = chance
        self._first_delay = first_delay
        self._longest_delay = longest_delay
        self._waiting: OrderedDict[K, None] = OrderedDict()
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._timers: dict[K, tuple[float, asyncio.TimerHandle]] = {}
        self._failures: dict[K, int] = {}
        self._closed = False
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def later(self) -> int:
        """How many keys are delayed."""
        return len(self._timers)

    @property
    def idle(self) -> bool:
        """Whether no key waits or is being processed; delayed keys do not count."""
        return not self._waiting and not self._working

    def add(self, key: K) -> None:
        """Add a key, unless it waits already."""
        if key in self._working:
            self._again.add(key)
            return
        self._waiting[key] = None
        self._wake.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Add a key after a delay; of several delays the shortest counts."""
        if seconds <= 0:
            self.add(key)
            return
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        timer = self._timers.get(key)
        if timer is not None:
            if timer[0] <= due:
                return
            timer[1].cancel()
        self._timers[key] = (due, loop.call_at(due, self._due, key))

    def retry(self, key: K) -> float:
        """Add a failed key again after a delay that doubles with each failure; returns the delay."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # 2**30 is past any longest delay; without the cap the power would grow without end.
        delay = min(self._first_delay * 2 ** min(failures, 30), self._longest_delay)
        delay = self._chance.jitter(delay, 0.5)
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Reset a key's failure count, so that its next failure starts from the shortest delay."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key; it belongs to the caller until `done`."""
        while not self._waiting:
            self._wake.clear()
            await self._wake.wait()
        key, _ = self._waiting.popitem(last=False)
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        """Mark a key as processed."""
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Cancel all delayed keys."""
        self._closed = True
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)
