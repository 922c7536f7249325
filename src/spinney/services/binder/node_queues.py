"""The order of bindings: sequential per node, concurrent across nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class NodeQueues:
    """A queue per node, so that a kubelet admits pods in the order of decisions.

    A bind enters after its other steps: waiting for a device or a volume blocks nobody.
    """

    def __init__(self, at_once: int) -> None:
        self._places = asyncio.Semaphore(at_once)
        # Weak: an unused lock disappears.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, node: str) -> AsyncIterator[None]:
        """Wait for earlier bindings to the node, and for one of the places that all nodes share."""
        lock = self._locks.setdefault(node, asyncio.Lock())
        async with lock, self._places:
            yield
