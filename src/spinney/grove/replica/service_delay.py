"""When a replica's Service is created: after the gates of all replicas came off, but within seconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from spinney.api.meta import Key
from spinney.kube.clock import Clock

# The longest delay, counted from the first pod on a node.
_SCHEDULED_SECONDS = 3.0
# The longest delay while no pod has a node, counted from the first reconcile.
_LONGEST_SECONDS = 10.0


class ServiceDelay:
    """Remembers which replicas without a Service wait, and since when.

    A Service with its endpoints costs the cluster as much as two pods, and has no use before a pod runs. So where many
    replicas are created, the gates of all come off before the first Service is created.
    """

    def __init__(self, clock: Clock, wake: Callable[[Key], None]) -> None:
        """`wake` is called for each replica that need not wait any longer."""
        self._clock = clock
        self._wake = wake
        self._waiting_since: dict[Key, datetime] = {}
        self._scheduled_since: dict[Key, datetime] = {}
        # Replicas all of whose pods are still gated.
        self._gated: set[Key] = set()

    def seconds(self, key: Key, *, ungated: bool, scheduled: bool) -> float:
        """How much longer a replica's Service waits; `ungated` and `scheduled` say whether one of its pods is."""
        now = self._clock.now()
        since, longest = self._waiting_since.setdefault(key, now), _LONGEST_SECONDS
        if ungated:
            self._remove_gated(key)
        else:
            self._gated.add(key)
        if scheduled:
            since, longest = self._scheduled_since.setdefault(key, now), _SCHEDULED_SECONDS
        remaining = longest - (now - since).total_seconds() if self._gated else 0.0
        if remaining <= 0:
            self.forget(key)
        return max(0.0, remaining)

    def forget(self, key: Key) -> None:
        """Drop a replica that has its Service, or is gone."""
        self._waiting_since.pop(key, None)
        self._scheduled_since.pop(key, None)
        self._remove_gated(key)

    def _remove_gated(self, key: Key) -> None:
        """When the last gated replica is removed, the others need not wait any longer."""
        if key not in self._gated:
            return
        self._gated.remove(key)
        if not self._gated:
            for waiting in self._waiting_since:
                self._wake(waiting)
