"""Watch caches: what the API server holds, kept current in memory, with indexes."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from spinney.api.meta import Object
from spinney.kube.client import Client
from spinney.kube.errors import ApiError, ConnectionLost, Gone, NotFound
from spinney.kube.writes import Write

T = TypeVar("T", bound=Object)
Key = tuple[str, str]  # namespace, name


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What a watch event did: `old` is None for a new object, `new` is None for one that went."""

    old: T | None
    new: T | None

    @property
    def object(self) -> T:
        """The newest state that is known."""
        return cast(T, self.new if self.new is not None else self.old)


class Cache(Generic[T]):
    """All objects of one kind (and selector). Readers see immutable objects; handlers run in order, synchronously."""

    def __init__(self, client: Client, of: type[T], labels: str = "", fields: str = "", namespace: str = "") -> None:
        self.of = of
        self._client = client
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._objects: dict[Key, T] = {}
        self._indexes: dict[str, tuple[Callable[[T], Iterable[str]], dict[str, dict[Key, T]]]] = {}
        self._handlers: list[Callable[[Change[T]], None]] = []
        self._waiters: list[tuple[Write, asyncio.Future[None]]] = []
        self._synced = asyncio.Event()
        self.resource_version = ""

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object of that name."""
        return self._objects.get((namespace, name))

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def index(self, name: str, keys: Callable[[T], Iterable[str]]) -> None:
        """Group objects by keys that a function finds on each; asking twice for one name is harmless."""
        if name in self._indexes:
            return
        table: dict[str, dict[Key, T]] = defaultdict(dict)
        self._indexes[name] = (keys, table)
        for key, found in self._objects.items():
            for value in keys(found):
                table[value][key] = found

    def by(self, index: str, value: str) -> list[T]:
        """The objects that an index groups under a value."""
        return list(self._indexes[index][1].get(value, {}).values())

    def on_change(self, handler: Callable[[Change[T]], None]) -> None:
        """Call the handler for every change; what is already here is told as new at once."""
        self._handlers.append(handler)
        for found in list(self._objects.values()):
            handler(Change(None, found))

    async def synced(self) -> None:
        """Wait until the first list is in."""
        await self._synced.wait()

    @property
    def has_synced(self) -> bool:
        """Whether the first list is in."""
        return self._synced.is_set()

    def has_seen(self, write: Write) -> bool:
        """Whether what the cache shows is at least as new as a write; true too where it cannot show the write."""
        if self._namespace and write.namespace != self._namespace:
            return True
        found = self._objects.get((write.namespace, write.name))
        if write.verb == "delete" and (found is None or (write.uid and found.uid != write.uid)):
            return True
        if found is not None and _reached(found.metadata.resource_version, write.resource_version):
            return True
        if found is None and (self._labels or self._fields):
            return True
        return _reached(self.resource_version, write.resource_version)

    async def seen(self, write: Write) -> None:
        """Wait until the cache is at least as new as a write."""
        if not self.has_synced or self.has_seen(write):
            return
        waiter = (write, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            await waiter[1]
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    async def run(self) -> None:
        """Keep the cache current until cancelled."""
        while True:
            listing = await self._client.list(self.of, self._namespace, labels=self._labels, fields=self._fields)
            self._replace(listing.items)
            self.resource_version = listing.resource_version
            self._synced.set()
            self._wake()
            try:
                while True:
                    await self._follow()
            except (Gone, ConnectionLost):
                continue

    async def _follow(self) -> None:
        events = self._client.watch(
            self.of,
            self._namespace,
            resource_version=self.resource_version,
            labels=self._labels,
            fields=self._fields,
        )
        async for event in events:
            self.resource_version = event.resource_version
            if event.object is not None:
                key = (event.object.namespace, event.object.name)
                self._put(key, None if event.type == "DELETED" else event.object)
            if self._waiters:
                self._wake()

    def _wake(self) -> None:
        for write, waiter in self._waiters:
            if not waiter.done() and self.has_seen(write):
                waiter.set_result(None)

    def _replace(self, items: list[T]) -> None:
        listed = {(item.namespace, item.name): item for item in items}
        for key in [key for key in self._objects if key not in listed]:
            self._put(key, None)
        for key, item in listed.items():
            known = self._objects.get(key)
            if known is None or known.metadata.resource_version != item.metadata.resource_version:
                self._put(key, item)

    def _put(self, key: Key, new: T | None) -> None:
        old = self._objects.pop(key, None)
        if new is not None:
            self._objects[key] = new
        for keys, table in self._indexes.values():
            for value in keys(old) if old is not None else ():
                table[value].pop(key, None)
            for value in keys(new) if new is not None else ():
                table[value][key] = new  # type: ignore[assignment]  # narrowed by the loop's condition
        if old is None and new is None:
            return
        for handler in self._handlers:
            handler(Change(old, new))


def _reached(version: str, wanted: str) -> bool:
    # Kubernetes declares resource versions of one kind comparable as integers.
    if version.isdecimal() and wanted.isdecimal():
        return int(version) >= int(wanted)
    return version == wanted or not wanted


class Caches:
    """One cache per kind and selector, shared by everyone in the process."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._caches: dict[tuple[type[Object], str, str, str], Cache[Any]] = {}
        self._tasks: asyncio.TaskGroup | None = None

    def of(self, kind: type[T], *, labels: str = "", fields: str = "", namespace: str = "") -> Cache[T]:
        """The cache for a kind; it is filled from the moment `run` runs."""
        key = (kind, labels, fields, namespace)
        if key not in self._caches:
            self._caches[key] = Cache(self._client, kind, labels, fields, namespace)
            if self._tasks is not None:
                self._tasks.create_task(self._caches[key].run())
        return cast(Cache[T], self._caches[key])

    async def run(self) -> None:
        """Keep every cache current until cancelled, those asked for later too."""
        async with asyncio.TaskGroup() as self._tasks:
            for cache in self._caches.values():
                self._tasks.create_task(cache.run())
            await asyncio.Event().wait()

    async def synced(self) -> None:
        """Wait until every cache asked for so far has its first list."""
        for cache in list(self._caches.values()):
            await cache.synced()

    async def caught_up(self, write: Write) -> None:
        """Wait until every cache of the written kind shows the write, or something newer."""
        caches = [cache for cache in self._caches.values() if cache.of.resource == write.resource]
        if not caches:
            return
        if write.lost:
            write = await self._settle(write)
        for cache in caches:
            await cache.seen(write)

    async def _settle(self, write: Write) -> Write:
        """Find out what became of a write whose answer was lost."""
        delay = 0.05
        while True:
            try:
                found = await self._client.get(write.resource, write.name, write.namespace)
            except NotFound:
                return replace(write, verb="delete", resource_version="", uid="")
            except (ApiError, ConnectionLost):
                await asyncio.sleep(self._client.chance.jitter(delay, 0.5))
                delay = min(2 * delay, 10.0)
            else:
                return replace(write, verb="patch", resource_version=found["metadata"]["resourceVersion"])
