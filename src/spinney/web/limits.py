"""Limits per client: requests by a token bucket, open streams by number."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spinney.web.settings import Limits

# Clients that are remembered; the one that was quiet the longest goes first.
_MOST_CLIENTS = 10_000


class TooMany(Exception):
    """A client asks for more than its share; `after` says in how many seconds it may ask again."""

    def __init__(self, text: str, after: float) -> None:
        super().__init__(text)
        self.after = after


class ClientLimits:
    """Counts what each client asks for."""

    def __init__(self, limits: Limits, time: Callable[[], float] | None = None) -> None:
        self._limits = limits
        self._time = time or asyncio.get_running_loop().time
        # Client → tokens that are left, and when they were counted.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._streams: dict[str, int] = {}

    def request(self, client: str) -> None:
        """Take one token of a client's bucket, or raise TooMany."""
        now, rate, burst = self._time(), self._limits.requests_per_second, self._limits.burst
        left, since = self._buckets.pop(client, (float(burst), now))
        left = min(burst, left + (now - since) * rate)
        if left < 1.0:
            self._buckets[client] = (left, now)
            raise TooMany(f"more than {rate:g} requests a second", (1.0 - left) / rate)
        self._buckets[client] = (left - 1.0, now)
        if len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)

    @contextmanager
    def stream(self, client: str) -> Iterator[None]:
        """Hold one of a client's streams for the block, or raise TooMany."""
        count = self._streams.get(client, 0)
        if count >= self._limits.streams:
            raise TooMany(f"{count} streams are open, which is the most for one client", 5.0)
        self._streams[client] = count + 1
        try:
            yield
        finally:
            self._streams[client] -= 1
            if not self._streams[client]:
                del self._streams[client]
