"""Limits per client: requests by a token bucket, open streams by number."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spinney.web.settings import Limits

# Clients that are remembered; the one whose last request is the oldest is dropped first.
_MOST_CLIENTS = 10_000


class TooMany(Exception):
    """A client sends more than its limit; it may send again after `after` seconds."""

    def __init__(self, text: str, after: float) -> None:
        super().__init__(text)
        self.after = after


class Buckets:
    """A token bucket for each client."""

    def __init__(self, rate: float, burst: int, time: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._time = time
        # Client → tokens that are left, and when they were counted.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, text: str) -> None:
        """Take one token of a client's bucket, or raise TooMany with a text."""
        now = self._time()
        left, since = self._left.pop(client, (float(self._burst), now))
        left = min(self._burst, left + (now - since) * self._rate)
        if left < 1.0:
            self._left[client] = (left, now)
            raise TooMany(text, (1.0 - left) / self._rate)
        self._left[client] = (left - 1.0, now)
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)


class ClientLimits:
    """Counts what each client asks for."""

    def __init__(self, limits: Limits, time: Callable[[], float] | None = None) -> None:
        time = time or asyncio.get_running_loop().time
        self._limits = limits
        self._requests = Buckets(limits.requests_per_second, limits.burst, time)
        self._what_ifs = Buckets(limits.what_ifs_per_minute / 60, limits.what_ifs_per_minute, time)
        self._streams: dict[str, int] = {}

    def request(self, client: str) -> None:
        """Count a request, or raise TooMany."""
        self._requests.take(client, f"more than {self._limits.requests_per_second:g} requests a second")

    def what_if(self, client: str) -> None:
        """Count a what-if question, which costs far more than other requests, or raise TooMany."""
        self._what_ifs.take(client, f"more than {self._limits.what_ifs_per_minute} what-if questions a minute")

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
