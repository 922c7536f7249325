"""When a replica's Service is made: gates come off first, of all replicas, but nothing waits for long."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from spinney.kube.cache import Key
from spinney.kube.clock import Clock

# How long a Service is put off while pods of its replica are free to run, and while all of them are held.
_FREE_SECONDS = 3.0
_HELD_SECONDS = 10.0


class Courtesy:
    """Remembers which replicas without a Service wait, and since when.

    A Service costs the cluster as much as two pods, with the endpoints that follow it, and is of no use before a pod
    runs. So where many replicas are made, the gates of all come off before it is the Services' turn.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Set by the component: a replica need not wait any longer.
        self.wake: Callable[[Key], None] = lambda key: None
        self._held: dict[Key, datetime] = {}
        self._free: dict[Key, datetime] = {}

    def seconds(self, key: Key, *, free: bool) -> float:
        """How much longer a replica's Service waits; `free` where a pod of the replica may run."""
        now = self._clock.now()
        if free:
            self._let_go(key)
            begun, longest = self._free.setdefault(key, now), _FREE_SECONDS if self._held else 0.0
        else:
            begun, longest = self._held.setdefault(key, now), _HELD_SECONDS
        left = longest - (now - begun).total_seconds()
        if left <= 0:
            self.forget(key)
        return max(0.0, left)

    def forget(self, key: Key) -> None:
        """The replica has its Service, or is gone."""
        self._free.pop(key, None)
        self._let_go(key)

    def _let_go(self, key: Key) -> None:
        """One less is held; with the last of them the others' waiting ends."""
        if self._held.pop(key, None) is not None and not self._held:
            for waiting in self._free:
                self.wake(waiting)
