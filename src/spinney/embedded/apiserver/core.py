"""What every part of the API server works on: the store, the clock and the source of chance."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from spinney.api.times import rfc3339
from spinney.embedded.apiserver.resources.service_allocator import Allocation
from spinney.embedded.apiserver.store.store import Store
from spinney.kube.chance import Chance
from spinney.kube.clock import Clock, seconds


class Core:
    """The store, clock and chance of one server."""

    def __init__(self, clock: Clock, chance: Chance, store: Store, built_in: Collection[str]) -> None:
        """`built_in` are the tables of the kinds that are always served."""
        self.clock = clock
        self.chance = chance
        self.store = store
        self.built_in = built_in
        self.allocation = Allocation(store)
        self._second = self._next_second = datetime.min.replace(tzinfo=UTC)
        self._second_text = ""

    def timestamp(self) -> str:
        """Now, as `metav1.Time` writes it."""
        now = self.clock.now()
        # Written once for all writes of a second.
        if not self._second <= now < self._next_second:
            self._second = seconds(now)
            self._next_second = self._second + timedelta(seconds=1)
            self._second_text = rfc3339(self._second)
        return self._second_text
