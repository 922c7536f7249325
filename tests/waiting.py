"""Wait in tests: for any condition, for an object by its watch events, for a host; and run tasks beside a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from spinney.api.meta import Key
from spinney.kube.caches.cache import Cache
from spinney.kube.client.client import Client, T
from spinney.kube.controllers.host import Host

# Far above what anything takes on a busy machine: only what never happens is to fail.
PATIENCE = 180.0


async def until(
    holds: Callable[[], bool | Awaitable[bool]],
    seconds: float = PATIENCE,
    every: float = 0.05,
    describe: Callable[[], Awaitable[str]] | None = None,
) -> None:
    """Look again and again until something holds; for conditions that set no event."""
    try:
        async with asyncio.timeout(seconds):
            while not await _value(holds()):  # noqa: ASYNC110  # any condition of any kind: there is no one thing to watch
                await asyncio.sleep(every)
    except TimeoutError:
        raise AssertionError(f"not reached within {seconds:g} s: {await describe() if describe else holds}") from None


async def _value(answer: bool | Awaitable[bool]) -> bool:
    return answer if isinstance(answer, bool) else await answer


async def cache_until(
    holds: Callable[[], bool], *caches: Cache[Any], describe: Callable[[], str] | None = None
) -> None:
    """Wait until something holds, looking whenever one of the caches changes."""
    changed = asyncio.Event()
    for cache in caches:
        cache.on_change(lambda _: changed.set())
    try:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                changed.clear()
                await changed.wait()
    except TimeoutError:
        raise AssertionError(f"not reached within {PATIENCE:g} s: {describe() if describe else holds}") from None


async def object_until(client: Client, kind: type[T], key: Key, holds: Callable[[T | None], bool]) -> T | None:
    """Return the object once something holds for it (None: once it is gone), by watching it."""
    namespace, name = key
    fields = f"metadata.name={name}"
    async with asyncio.timeout(PATIENCE):
        while True:
            listing = await client.list(kind, namespace, fields=fields)
            current = listing.items[0] if listing.items else None
            if holds(current):
                return current
            version = listing.resource_version
            async for event in client.watch(kind, namespace, resource_version=version, fields=fields):
                current = None if event.type == "DELETED" else event.object
                if event.object is not None and holds(current):
                    return current


@asynccontextmanager
async def alongside(*work: Awaitable[Any]) -> AsyncIterator[None]:
    """Run coroutines as tasks for the block, and cancel them at its end."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        yield
    finally:
        for task in reversed(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def running(host: Host) -> AsyncIterator[Host]:
    """Run a host's components for the block, which begins when they are ready; raises at once if the host fails."""
    life = asyncio.create_task(host.run())
    ready = asyncio.create_task(host.ready.wait())
    try:
        await asyncio.wait({life, ready}, return_when=asyncio.FIRST_COMPLETED)
        if life.done():
            life.result()
        yield host
    finally:
        for task in (life, ready):
            task.cancel()
        await asyncio.gather(life, ready, return_exceptions=True)
