"""The order of binds: one after the other on each node, side by side across nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class Lanes:
    """A lane per node, entered in the order of decisions, so that a kubelet admits pods as they were decided.

    A bind enters once it has what it needs: one that still waits for a device or a volume is in nobody's way.
    """

    def __init__(self, at_once: int) -> None:
        self._places = asyncio.Semaphore(at_once)
        # A lane that nobody is in, or waits for, is forgotten.
        self._lanes: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, node: str) -> AsyncIterator[None]:
        """Wait for those who came before to the same node, and for a place among all."""
        lane = self._lanes.setdefault(node, asyncio.Lock())
        async with lane, self._places:
            yield
