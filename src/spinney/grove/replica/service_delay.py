"""When a replica's Service is made: gates come off first, of all replicas, but nothing waits for long."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from spinney.kube.caches.cache import Key
from spinney.kube.clock import Clock

# How long a Service is put off from when its replica has a pod on a node, and from the first look where it has none.
_PLACED_SECONDS = 3.0
_LONGEST_SECONDS = 10.0


class Courtesy:
    """Remembers which replicas without a Service wait, and since when.

    A Service costs the cluster as much as two pods, with the endpoints that follow it, and is of no use before a pod
    runs. So where many replicas are made, the gates of all come off before it is the Services' turn.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Set by the component: a replica need not wait any longer.
        self.wake: Callable[[Key], None] = lambda key: None
        self._waiting: dict[Key, datetime] = {}
        self._placed: dict[Key, datetime] = {}
        self._held: set[Key] = set()

    def seconds(self, key: Key, *, free: bool, placed: bool) -> float:
        """How much longer a replica's Service waits; `free` where a pod may run, `placed` where one has a node."""
        now = self._clock.now()
        begun, longest = self._waiting.setdefault(key, now), _LONGEST_SECONDS
        if free:
            self._let_go(key)
        else:
            self._held.add(key)
        if placed:
            begun, longest = self._placed.setdefault(key, now), _PLACED_SECONDS
        left = longest - (now - begun).total_seconds() if self._held else 0.0
        if left <= 0:
            self.forget(key)
        return max(0.0, left)

    def forget(self, key: Key) -> None:
        """The replica has its Service, or is gone."""
        self._waiting.pop(key, None)
        self._placed.pop(key, None)
        self._let_go(key)

    def _let_go(self, key: Key) -> None:
        """One less is held; with the last of them the others' waiting ends."""
        if key not in self._held:
            return
        self._held.remove(key)
        if not self._held:
            for waiting in self._waiting:
                self.wake(waiting)
