"""Keep a copy of one kind: list once, then watch; resume after a lost connection, relist after 410."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from typing import Any, Generic, Protocol, TypeVar, cast

import msgspec
import structlog

from spinney.api.meta import Key, Object
from spinney.kube.caches.interning import sharer
from spinney.kube.caches.set_aside import SetAside
from spinney.kube.client.client import Client
from spinney.kube.client.retry import Backoff
from spinney.kube.client.wire import Unreadable, WatchEvent
from spinney.kube.errors import ApiError, ConnectionLost, Gone, Invalid, NotFound

T = TypeVar("T", bound=Object)

_log = structlog.get_logger("spinney.kube.caches.reflector")

# A watch that lived this long was a good one: the next cut is resumed from at once.
_GOOD_SECONDS = 5.0


class Copy(Protocol[T]):
    """What a reflector keeps current."""

    resource_version: str

    def replace(self, items: list[T], resource_version: str) -> None:
        """Replace everything with a new list."""

    def get(self, key: Key | str) -> T | None:
        """The last known state of an object."""

    def apply(self, event: WatchEvent[T]) -> None:
        """Apply one watch event; a bookmark only moves the version."""


class Reflector(Generic[T]):
    """Lists and watches one kind into a copy until cancelled.

    A watch that ends, or a connection that breaks, is taken up again after the last version seen: no event is missed
    and none comes twice. Where the server no longer knows that version (410), everything is listed again, and the
    copy works out what changed in between.
    """

    def __init__(
        self,
        client: Client,
        of: type[T],
        copy: Copy[T],
        set_aside: SetAside,
        *,
        labels: str,
        fields: str,
        namespace: str,
    ) -> None:
        self._client = client
        self._of = of
        self._copy = copy
        self._set_aside = set_aside
        # Objects that cannot be read: all of them, and those that the list under way has shown.
        self._unreadable: set[Key] = set()
        self._met: set[Key] = set()
        self._share = sharer(of)
        self._labels = labels
        self._fields = fields
        self._namespace = namespace
        self._streams = True
        self._backoff = Backoff(first=0.2, longest=30.0)
        self._log = _log.bind(kind=of.resource.kind)

    async def run(self) -> None:
        """Keep the copy current until cancelled."""
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            started = loop.time()
            retry_after = 0.0
            try:
                await self._follow()
            except Gone:
                self._log.info("watch.expired", resource_version=self._copy.resource_version)
                self._copy.resource_version = ""
            except NotFound:
                if not failures:
                    self._log.warning("kind.not_served", api_version=self._of.resource.api_version)
            except (ApiError, ConnectionLost) as error:
                retry_after = error.status.details.retry_after_seconds if isinstance(error, ApiError) else 0.0
                self._log.info("watch.broken", error=str(error), failures=failures)
            except msgspec.MsgspecError:
                # Not even the envelope can be read; the list may show it mended.
                self._log.exception("watch.unreadable")
                self._copy.resource_version = ""
            if loop.time() - started >= _GOOD_SECONDS:
                failures = 0
                continue
            # The first cut costs nothing; only one that repeats itself at once is backed off from.
            delay = self._backoff.delay(failures - 1, self._client.chance) if failures else 0.0
            await asyncio.sleep(max(retry_after, delay))
            failures += 1

    async def _follow(self) -> None:
        """List if nothing is listed yet, then watch until the watch ends."""
        if not self._copy.resource_version:
            self._client.metrics.lists(self._of.resource.kind).inc()
        if not self._copy.resource_version and self._streams:
            try:
                await self._stream()
                return
            except Invalid:
                # Not served (before 1.32, or switched off): lists in pages do the same.
                self._streams = False
        if not self._copy.resource_version:
            await self._list()
        events = self._client.watch(
            self._of,
            self._namespace,
            resource_version=self._copy.resource_version,
            labels=self._labels,
            fields=self._fields,
        )
        await self._apply(events)

    async def _list(self) -> None:
        items: list[T] = []
        version = ""
        pages = self._client.pages(self._of, self._namespace, labels=self._labels, fields=self._fields)
        async for page in pages:
            # Page by page: equal parts that are freed only at the end would leave the memory fragmented.
            for item in page.items:
                self._share(item, None)
            items += page.items
            items += self._last_known(page.unreadable)
            version = page.resource_version
        self._replace(items, version)

    def _replace(self, items: list[T], version: str) -> None:
        """Replace the copy with a list, in which every object that cannot be read was met again."""
        gone, self._unreadable = self._unreadable - self._met, self._met
        self._met = set()
        for key in gone:
            self._set_aside.discard(self._of.resource, key)
        self._copy.replace(items, version)

    def _last_known(self, unreadable: Iterable[Unreadable]) -> list[T]:
        """Report objects that cannot be read; those that could be read once are kept as they were then."""
        for item in unreadable:
            self._met.add(item.key)
            self._set_aside.add(self._of.resource, item)
        former = (self._copy.get(item.key) for item in unreadable)
        return [item for item in former if item is not None]

    async def _stream(self) -> None:
        items: dict[tuple[str, str], T] = {}
        stream = self._client.stream(self._of, self._namespace, labels=self._labels, fields=self._fields)
        async with aclosing(_closable(stream)) as events:
            async for event in events:
                if event.type == "SYNCED":
                    self._replace(list(items.values()), event.resource_version)
                    items.clear()
                    break
                if event.unreadable is not None and event.type != "DELETED":
                    items.update({item.key: item for item in self._last_known([event.unreadable])})
                if event.object is None:
                    continue
                self._share(event.object, None)
                key = (event.object.namespace, event.object.name)
                if event.type == "DELETED":
                    items.pop(key, None)
                else:
                    items[key] = event.object
            async for event in events:
                self._apply_one(event)

    async def _apply(self, stream: AsyncIterator[WatchEvent[T]]) -> None:
        async with aclosing(_closable(stream)) as events:
            async for event in events:
                self._apply_one(event)

    def _apply_one(self, event: WatchEvent[T]) -> None:
        received = event.object
        if event.unreadable is not None:
            event = self._readable(event, event.unreadable)
        elif received is not None:
            self._forget(received.key)
            self._share(received, self._copy.get(received.key))
        self._copy.apply(event)

    def _readable(self, event: WatchEvent[T], unreadable: Unreadable) -> WatchEvent[T]:
        """Handle an event about an unreadable object: pass on its deletion; otherwise only note the version."""
        if event.type != "DELETED":
            self._unreadable.add(unreadable.key)
            self._set_aside.add(self._of.resource, unreadable)
            return WatchEvent("BOOKMARK", None, event.resource_version)
        self._forget(unreadable.key)
        return WatchEvent("DELETED", self._copy.get(unreadable.key), event.resource_version)

    def _forget(self, key: Key) -> None:
        if key in self._unreadable:
            self._unreadable.discard(key)
            self._set_aside.discard(self._of.resource, key)


def _closable(events: AsyncIterator[WatchEvent[T]]) -> AsyncGenerator[WatchEvent[T], Any]:
    return cast(AsyncGenerator[WatchEvent[T], Any], events)
