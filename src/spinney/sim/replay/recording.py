"""Write a live cluster's history: every change of what a plan looks at, a line each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from spinney.api.meta import encode
from spinney.api.times import rfc3339_micro
from spinney.kube.caches.cache import Caches, Change
from spinney.kube.client.client import Client
from spinney.kube.clock import Clock
from spinney.kube.errors import NotFound
from spinney.sim.replay.history import END, KINDS, Line, line_of


async def require_readable(client: Client) -> None:
    """Refuse with the API server's own words where a kind may not be read: its history would be empty, and wrong."""
    for kind in KINDS:
        with suppress(NotFound):
            await client.list(kind)


async def record(client: Client, clock: Clock, write: Callable[[bytes], Any], seconds: float | None) -> None:
    """Write the objects that are there, then every change to them, for so long or until cancelled."""
    caches = Caches(client)

    def changed(kind: str, change: Change[Any]) -> None:
        document = msgspec.json.decode(encode(change.object))
        write(line_of(kind, document, rfc3339_micro(clock.now()), deleted=change.new is None))

    for kind in KINDS:
        caches.of(kind).on_change(partial(changed, kind.resource.kind))
    watching = asyncio.create_task(caches.run())
    try:
        await asyncio.wait([watching], timeout=seconds)
        if watching.done():
            watching.result()
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        write(msgspec.json.encode(Line(at=rfc3339_micro(clock.now()), kind=END)) + b"\n")
