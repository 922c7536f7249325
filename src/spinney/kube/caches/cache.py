"""Watch caches: what the API server holds, kept current in memory, with indexes."""

from __future__ import annotations

import asyncio
import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar, cast

import msgspec
import structlog
from msgspec.structs import replace

from spinney.api import selector
from spinney.api.meta import Key, Object, Resource
from spinney.kube.caches.reflector import Reflector
from spinney.kube.client.client import Client
from spinney.kube.client.wire import WatchEvent
from spinney.kube.client.writes import Write
from spinney.kube.errors import ApiError, ConnectionLost, Forbidden, NotFound

T = TypeVar("T", bound=Object)

_log = structlog.get_logger("spinney.kube.caches.cache")

# What ends the handlers that are being registered; None where they last as long as their cache.
_endings: ContextVar[list[Callable[[], None]] | None] = ContextVar("endings", default=None)


@contextmanager
def handlers_end() -> Iterator[None]:
    """Handlers registered inside, also by tasks started inside, end with the block: caches outlive their readers."""
    endings: list[Callable[[], None]] = []
    token = _endings.set(endings)
    try:
        yield
    finally:
        _endings.reset(token)
        for end in endings:
            end()


class Change(msgspec.Struct, Generic[T], frozen=True, gc=False):
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
        self._selector = selector.parse(labels)
        self._fields = fields
        self._objects: dict[Key, T] = {}
        self._indexes: dict[str, _Index[T]] = {}
        self._handlers: list[Callable[[Change[T]], None]] = []
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._sequence = 0
        self._gone_waiters: dict[Key, list[asyncio.Future[None]]] = {}
        self._synced = asyncio.Event()
        self._views: list[Cache[T]] = []
        self.resource_version = ""

    def get(self, key: Key | str) -> T | None:
        """The object of that namespace and name; for cluster-scoped kinds the name is enough."""
        return self._objects.get(("", key) if isinstance(key, str) else key)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def index(self, name: str, keys: Callable[[T], Iterable[str]]) -> None:
        """Group objects by keys that a function finds on each; asking twice for one name is harmless."""
        if name in self._indexes:
            return
        index = self._indexes[name] = _Index(keys)
        for key, found in self._objects.items():
            index.move(key, None, found)

    def by(self, index: str, value: str) -> list[T]:
        """The objects that an index groups under a value."""
        return self._indexes[index].find(value)

    def on_change(self, handler: Callable[[Change[T]], None]) -> None:
        """Call the handler for every change; what is already here is told as new at once."""
        self._handlers.append(handler)
        endings = _endings.get()
        if endings is not None:
            endings.append(lambda: self._handlers.remove(handler))
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
        if write.verb == "delete":
            return found is None or bool(write.uid and found.uid != write.uid)
        # Without a version there is nothing to wait for: the answer to a binding shows none.
        if not write.resource_version.isdecimal():
            return True
        if found is not None and _number(found.metadata.resource_version) >= int(write.resource_version):
            return True
        if found is None and not self._would_hold(write):
            return True
        return _number(self.resource_version) >= int(write.resource_version)

    async def seen(self, write: Write) -> None:
        """Wait until the cache is at least as new as a write."""
        if not self.has_synced or self.has_seen(write):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if write.verb == "delete":
            self._gone_waiters.setdefault((write.namespace, write.name), []).append(waiter)
        else:
            self._wait_for(int(write.resource_version), waiter)
        await waiter

    def _wait_for(self, version: int, waiter: asyncio.Future[None]) -> None:
        # The number keeps those that wait for one version in the order they came, run after run.
        self._sequence += 1
        heapq.heappush(self._waiters, (version, self._sequence, waiter))

    async def run(self) -> None:
        """Keep the cache current until cancelled."""
        reflector = Reflector(
            self._client, self.of, self, labels=self._labels, fields=self._fields, namespace=self._namespace
        )
        await reflector.run()

    def replace(self, items: list[T], resource_version: str) -> None:
        """Everything is now exactly this: tell what went, what is new and what changed, and nothing else."""
        listed = {(item.namespace, item.name): item for item in items}
        for key in [key for key in self._objects if key not in listed]:
            self._put(key, None)
        for key, item in listed.items():
            self._meet(key, item)
        self._reached(resource_version)
        self._synced.set()

    def apply(self, event: WatchEvent[T]) -> None:
        """One thing changed, or only the version did."""
        if event.object is not None:
            key = (event.object.namespace, event.object.name)
            if event.type == "DELETED":
                self._put(key, None)
            else:
                self._meet(key, event.object)
        self._reached(event.resource_version)

    def _meet(self, key: Key, item: T) -> None:
        known = self._objects.get(key)
        if known is not None and known.metadata.resource_version == item.metadata.resource_version:
            return
        # A namesake is not the same object: its predecessor went first.
        if known is not None and known.uid != item.uid:
            self._put(key, None)
        self._put(key, item)

    def _put(self, key: Key, new: T | None) -> None:
        old = self._objects.pop(key, None)
        if old is None and new is None:
            return
        if new is not None:
            self._objects[key] = new
        for index in self._indexes.values():
            index.move(key, old, new)
        change = Change(old, new)
        for handler in tuple(self._handlers):
            self._call(handler, change)
        if new is None:
            for waiter in self._gone_waiters.pop(key, ()):
                _release(waiter)

    def _call(self, handler: Callable[[Change[T]], None], change: Change[T]) -> None:
        try:
            handler(change)
        except Exception:
            # The cache is everyone's: one reader's mistake must not end it.
            _log.exception("handler.failed", kind=self.of.resource.kind, name=change.object.name)

    def _reached(self, resource_version: str) -> None:
        self.resource_version = resource_version
        for view in self._views:
            view._reached(resource_version)
        if not self._waiters:
            return
        reached = _number(resource_version)
        while self._waiters and self._waiters[0][0] <= reached:
            _release(heapq.heappop(self._waiters)[2])

    async def follow(self, whole: Cache[T]) -> None:
        """Show a part of a cache that holds everything: the same objects, so that nothing is held or sent twice."""
        await whole.caught_up_with(self)
        self.replace([found for found in whole if self._selects(found)], whole.resource_version)
        for key, old in list(self._objects.items()):
            self._swap(key, old, whole._objects[key])
        whole._handlers.append(self._follow_change)
        whole._views.append(self)

    def _swap(self, key: Key, old: T, equal: T) -> None:
        """Hold another copy of the same state; nobody needs to hear of it."""
        self._objects[key] = equal
        for index in self._indexes.values():
            index.move(key, old, equal)

    async def caught_up_with(self, other: Cache[T]) -> None:
        """Wait until this cache is synced, and at least as new as another."""
        await self.synced()
        while _number(self.resource_version) < _number(other.resource_version):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._wait_for(_number(other.resource_version), waiter)
            await waiter

    def _follow_change(self, change: Change[T]) -> None:
        found = change.object
        if change.new is not None and self._selects(change.new):
            self._meet((found.namespace, found.name), change.new)
        else:
            self._put((found.namespace, found.name), None)

    def _selects(self, found: T) -> bool:
        if self._namespace and found.namespace != self._namespace:
            return False
        return selector.matches(self._selector, found.metadata.labels)

    def _would_hold(self, write: Write) -> bool:
        """Whether an object that is not here may yet come; by fields we cannot tell, and do not wait."""
        if self._fields:
            return False
        return selector.matches(self._selector, write.labels)


class _Index(Generic[T]):
    """Objects grouped by what a function finds on them."""

    def __init__(self, keys: Callable[[T], Iterable[str]]) -> None:
        self._keys = keys
        self._table: dict[str, dict[Key, T]] = {}

    def find(self, value: str) -> list[T]:
        return list(self._table.get(value, {}).values())

    def move(self, key: Key, old: T | None, new: T | None) -> None:
        if old is not None:
            for value in self._values(old):
                group = self._table.get(value)
                if group is not None and group.pop(key, None) is not None and not group:
                    del self._table[value]
        if new is not None:
            for value in self._values(new):
                self._table.setdefault(value, {})[key] = new

    def _values(self, found: T) -> Iterable[str]:
        try:
            return self._keys(found)
        except Exception:
            # As with handlers: the cache is everyone's.
            _log.exception("index.failed", kind=found.resource.kind, name=found.name)
            return ()


def _number(version: str) -> int:
    """Kubernetes declares resource versions of one kind comparable as integers."""
    return int(version) if version.isdecimal() else 0


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


Which = tuple[type[Object], str, str, str]  # kind, labels, fields, namespace


class Caches:
    """One cache per kind and selector, shared by everyone in the process.

    Where one holds all of a kind, those that select some of it by labels or namespace only show a part of it.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._caches: dict[Which, Cache[Any]] = {}
        self._by_resource: dict[Resource, list[Cache[Any]]] = defaultdict(list)
        self._tasks: asyncio.TaskGroup | None = None
        self._own: dict[Which, asyncio.Task[None]] = {}

    def of(self, kind: type[T], *, labels: str = "", fields: str = "", namespace: str = "") -> Cache[T]:
        """The cache for a kind; it is filled from the moment `run` runs."""
        which = (kind, labels, fields, namespace)
        if which not in self._caches:
            made = self._caches[which] = Cache(self._client, kind, labels, fields, namespace)
            self._by_resource[kind.resource].append(made)
            if self._tasks is not None:
                self._tasks.create_task(self._keep(which))
        return cast(Cache[T], self._caches[which])

    @property
    def running(self) -> bool:
        """Whether somebody keeps the caches current."""
        return self._tasks is not None

    async def run(self) -> None:
        """Keep every cache current until cancelled, those asked for later too."""
        async with asyncio.TaskGroup() as self._tasks:
            for which in list(self._caches):
                self._tasks.create_task(self._keep(which))
            await asyncio.Event().wait()

    async def _keep(self, which: Which) -> None:
        """Fill a cache from the one that holds everything, if there is one, else by a watch of its own."""
        cache = self._caches[which]
        whole = self._caches.get((which[0], "", "", ""))
        if whole is not None and whole is not cache and not which[2]:
            await cache.follow(whole)
            return
        assert self._tasks is not None
        self._own[which] = self._tasks.create_task(cache.run(), name=f"cache of {which[0].__name__}")
        if whole is cache:
            await self._take_over(which)

    async def _take_over(self, whole: Which) -> None:
        """Let caches that watch a part for themselves follow the whole from now on."""
        for which, cache in list(self._caches.items()):
            if which != whole and which[0] is whole[0] and not which[2] and which in self._own:
                await cache.follow(self._caches[whole])
                self._own.pop(which).cancel()

    async def synced(self) -> None:
        """Wait until every cache asked for so far has its first list."""
        for cache in list(self._caches.values()):
            await cache.synced()

    async def caught_up(self, write: Write) -> None:
        """Wait until every cache of the written kind shows the write, or something newer."""
        caches = self._by_resource.get(write.resource)
        if caches is None:
            return
        if write.lost:
            write = await self._settle(write)
        for cache in tuple(caches):
            await cache.seen(write)

    async def _settle(self, write: Write) -> Write:
        """Find out what became of a write whose answer was lost."""
        delay = 0.05
        while True:
            try:
                found = await self._client.get(write.resource, (write.namespace, write.name))
            except NotFound:
                return replace(write, verb="delete", resource_version="", uid="")
            except Forbidden:
                # Whoever may write but not read cannot find out, and must not wait for ever.
                return replace(write, verb="patch", resource_version="")
            except (ApiError, ConnectionLost):
                await asyncio.sleep(self._client.chance.jitter(delay, 0.5))
                delay = min(2 * delay, 10.0)
            else:
                return replace(write, verb="patch", resource_version=found["metadata"]["resourceVersion"])
