"""Waiting until objects are gone: deletion ends when finalizers and grace periods have."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TypeVar, cast

from spinney.api.meta import Key, Object
from spinney.kube.client.client import Client
from spinney.kube.client.wire import WatchEvent
from spinney.kube.errors import ConnectionLost, Gone, NotFound

T = TypeVar("T", bound=Object)


async def until_gone(
    client: Client, kind: type[Object], namespace: str = "", *, labels: str = "", fields: str = ""
) -> None:
    """Return once no selected object is left, or the kind is no longer served; it watches, and never polls."""
    while True:
        try:
            listing = await client.list(kind, namespace, labels=labels, fields=fields)
            remaining = {live.key for live in listing.items}
            version = listing.resource_version
            watch = client.watch(kind, namespace, resource_version=version, labels=labels, fields=fields)
            if await _emptied(remaining, watch):
                return
        except NotFound:
            return
        except (Gone, ConnectionLost):
            # As where a watch ends by itself: the next one begins with what is left.
            continue


async def _emptied(remaining: set[Key], watch: AsyncIterator[WatchEvent[T]]) -> bool:
    """Follow a watch until nothing is left; False if it ends before."""
    async with aclosing(cast(AsyncGenerator[WatchEvent[T], None], watch)) as events:
        while remaining:
            event = await anext(events, None)
            if event is None:
                return False
            if event.object is not None and event.type == "DELETED":
                remaining.discard(event.object.key)
            elif event.object is not None:
                remaining.add(event.object.key)
    return True
