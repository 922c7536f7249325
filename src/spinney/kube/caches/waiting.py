"""Wait until a cached object meets a condition."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Generic, TypeVar

from spinney.api.meta import Key, Object
from spinney.kube.caches.cache import Cache, Change

T = TypeVar("T", bound=Object)
Predicate = Callable[[T | None], bool]


class Waiting(Generic[T]):
    """Lets many tasks wait for objects of one cache."""

    def __init__(self, cache: Cache[T]) -> None:
        self._cache = cache
        self._waiters: dict[Key, list[tuple[Predicate[T], asyncio.Future[T | None]]]] = defaultdict(list)
        cache.on_change(self._changed)

    async def until(self, key: Key, holds: Predicate[T], seconds: float) -> T | None:
        """The object once the condition holds for it; None stands for an object that does not exist."""
        current = self._cache.get(key)
        if holds(current):
            return current
        future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._waiters[key].append((holds, future))
        try:
            async with asyncio.timeout(seconds):
                return await future
        finally:
            self._waiters[key] = [waiter for waiter in self._waiters[key] if waiter[1] is not future]
            if not self._waiters[key]:
                del self._waiters[key]

    def _changed(self, change: Change[T]) -> None:
        key = (change.object.namespace, change.object.name)
        for holds, future in self._waiters.get(key, ()):
            if not future.done() and holds(change.new):
                future.set_result(change.new)
