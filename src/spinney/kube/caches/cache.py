"""Watch caches: the objects of a kind, kept current in memory, with indexes."""

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
from spinney.api.numbers import whole_number
from spinney.kube.caches.reflector import Reflector
from spinney.kube.caches.set_aside import SetAside
from spinney.kube.client.client import Client
from spinney.kube.client.wire import WatchEvent
from spinney.kube.client.writes import Write
from spinney.kube.errors import ApiError, ConnectionLost, Forbidden

T = TypeVar("T", bound=Object)

_log = structlog.get_logger("spinney.kube.caches.cache")

# What ends the handlers that are being registered; None where they last as long as their cache.
_endings: ContextVar[list[Callable[[], None]] | None] = ContextVar("endings", default=None)


@contextmanager
def handlers_end() -> Iterator[None]:
    """Remove handlers registered inside the block, also by tasks it starts, when the block ends."""
    endings: list[Callable[[], None]] = []
    token = _endings.set(endings)
    try:
        yield
    finally:
        _endings.reset(token)
        for end in endings:
            end()


class Change(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One change of an object: `old` is None if it is new, `new` is None if it was deleted."""

    old: T | None
    new: T | None

    @property
    def object(self) -> T:
        """The newest known state."""
        return cast(T, self.new if self.new is not None else self.old)


class Cache(Generic[T]):
    """All objects of one kind (and selector). Readers see immutable objects; handlers run in order, synchronously."""

    def __init__(
        self,
        client: Client,
        of: type[T],
        labels: str = "",
        fields: str = "",
        namespace: str = "",
        *,
        set_aside: SetAside | None = None,
    ) -> None:
        self.of = of
        self._set_aside = set_aside if set_aside is not None else SetAside(client.metrics)
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
        """Index objects by the values that a function returns for each; repeating a name does nothing."""
        if name in self._indexes:
            return
        index = self._indexes[name] = _Index(keys)
        for key, item in self._objects.items():
            index.move(key, None, item)

    def by(self, index: str, value: str) -> list[T]:
        """The objects that an index groups under a value."""
        return self._indexes[index].find(value)

    def on_change(self, handler: Callable[[Change[T]], None]) -> None:
        """Call the handler for every change, and at once for every cached object as new."""
        self._handlers.append(handler)
        endings = _endings.get()
        if endings is not None:
            endings.append(lambda: self._handlers.remove(handler))
        for item in list(self._objects.values()):
            handler(Change(None, item))

    async def synced(self) -> None:
        """Wait for the first list."""
        await self._synced.wait()

    @property
    def has_synced(self) -> bool:
        """Whether the first list has arrived."""
        return self._synced.is_set()

    def has_seen(self, write: Write) -> bool:
        """Whether the cache is at least as new as a write; True if it could never show that write."""
        if self._namespace and write.namespace != self._namespace:
            return True
        cached = self._objects.get((write.namespace, write.name))
        if write.verb == "delete":
            return cached is None or bool(write.uid and cached.uid != write.uid)
        # Without a version there is nothing to wait for: the answer to a binding shows none.
        if whole_number(write.resource_version) is None:
            return True
        if cached is not None and _number(cached.metadata.resource_version) >= _number(write.resource_version):
            return True
        if cached is None and not self._would_hold(write):
            return True
        return _number(self.resource_version) >= _number(write.resource_version)

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
            self._client,
            self.of,
            self,
            self._set_aside,
            labels=self._labels,
            fields=self._fields,
            namespace=self._namespace,
        )
        await reflector.run()

    def replace(self, items: list[T], resource_version: str) -> None:
        """Replace everything with a new list; handlers get only what was deleted, added or changed."""
        listed = {(item.namespace, item.name): item for item in items}
        for key in [key for key in self._objects if key not in listed]:
            self._put(key, None)
        for key, item in listed.items():
            self._update(key, item)
        self._reached(resource_version)
        self._synced.set()

    def apply(self, event: WatchEvent[T]) -> None:
        """Apply one watch event; a bookmark only moves the version."""
        if event.object is not None:
            key = (event.object.namespace, event.object.name)
            if event.type == "DELETED":
                self._put(key, None)
            else:
                self._update(key, event.object)
        self._reached(event.resource_version)

    def _update(self, key: Key, item: T) -> None:
        current = self._objects.get(key)
        if current is not None and current.metadata.resource_version == item.metadata.resource_version:
            return
        # Another object of the same name: the old one was deleted first.
        if current is not None and current.uid != item.uid:
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
            # All components share the cache: one reader's mistake must not end it.
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
        """Show part of a cache of the whole kind: the same objects, so that nothing is stored or watched twice."""
        await whole.caught_up_with(self)
        self.replace([item for item in whole if self._selects(item)], whole.resource_version)
        for key, old in list(self._objects.items()):
            self._swap(key, old, whole._objects[key])
        whole._handlers.append(self._follow_change)
        whole._views.append(self)

    def _swap(self, key: Key, old: T, equal: T) -> None:
        """Replace an object by an equal one, without calling handlers."""
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
        changed = change.object
        if change.new is not None and self._selects(change.new):
            self._update((changed.namespace, changed.name), change.new)
        else:
            self._put((changed.namespace, changed.name), None)

    def _selects(self, item: T) -> bool:
        if self._namespace and item.namespace != self._namespace:
            return False
        return selector.matches(self._selector, item.metadata.labels)

    def _would_hold(self, write: Write) -> bool:
        """Whether the cache may yet show an object it lacks; unknown for field selectors, so do not wait."""
        if self._fields:
            return False
        return selector.matches(self._selector, write.labels)


class _Index(Generic[T]):
    """Objects grouped by the values that a function returns for them."""

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

    def _values(self, item: T) -> Iterable[str]:
        try:
            return self._keys(item)
        except Exception:
            # One reader's mistake must not end the cache.
            _log.exception("index.failed", kind=item.resource.kind, name=item.name)
            return ()


def _number(version: str) -> int:
    """A resource version as an integer: Kubernetes declares those of one kind comparable."""
    return whole_number(version) or 0


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


Which = tuple[type[Object], str, str, str]  # kind, labels, fields, namespace


class Caches:
    """One cache per kind and selector, shared by all components of the process.

    Caches that select by labels or namespace show a part of the cache of the whole kind, if there is one.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.set_aside = SetAside(client.metrics)
        self._caches: dict[Which, Cache[Any]] = {}
        self._by_resource: dict[Resource, list[Cache[Any]]] = defaultdict(list)
        self._tasks: asyncio.TaskGroup | None = None
        self._own: dict[Which, asyncio.Task[None]] = {}

    def of(self, kind: type[T], *, labels: str = "", fields: str = "", namespace: str = "") -> Cache[T]:
        """The cache of a kind; `run` fills it."""
        which = (kind, labels, fields, namespace)
        if which not in self._caches:
            cache = self._caches[which] = Cache(self._client, kind, labels, fields, namespace, set_aside=self.set_aside)
            self._by_resource[kind.resource].append(cache)
            if self._tasks is not None:
                self._tasks.create_task(self._keep(which))
        return cast(Cache[T], self._caches[which])

    @property
    def running(self) -> bool:
        """Whether `run` keeps the caches current."""
        return self._tasks is not None

    async def run(self) -> None:
        """Keep every cache current until cancelled, also those requested later."""
        async with asyncio.TaskGroup() as self._tasks:
            for which in list(self._caches):
                self._tasks.create_task(self._keep(which))
            await asyncio.Event().wait()

    async def _keep(self, which: Which) -> None:
        """Fill a cache from the cache of the whole kind if there is one, else by its own watch."""
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
        """Switch caches with their own watch to the cache of the whole kind."""
        for which, cache in list(self._caches.items()):
            if which != whole and which[0] is whole[0] and not which[2] and which in self._own:
                await cache.follow(self._caches[whole])
                self._own.pop(which).cancel()

    async def synced(self) -> None:
        """Wait until every cache requested so far has synced."""
        for cache in list(self._caches.values()):
            await cache.synced()

    async def caught_up(self, write: Write) -> None:
        """Wait until every cache of the written kind is at least as new as the write."""
        caches = self._by_resource.get(write.resource)
        if caches is None:
            return
        if write.lost:
            write = await self._settle(write)
        for cache in tuple(caches):
            await cache.seen(write)

    async def _settle(self, write: Write) -> Write:
        """Read the object to find out whether a write without a response happened."""
        delay = 0.05
        while True:
            try:
                stored = await self._client.find(write.resource, (write.namespace, write.name))
            except Forbidden:
                # A component that may write but not read cannot find out, and must not wait forever.
                return replace(write, verb="patch", resource_version="")
            except (ApiError, ConnectionLost):
                await asyncio.sleep(self._client.chance.jitter(delay, 0.5))
                delay = min(2 * delay, 10.0)
            else:
                if stored is None:
                    return replace(write, verb="delete", resource_version="", uid="")
                return replace(write, verb="patch", resource_version=stored["metadata"]["resourceVersion"])
