"""The store: objects as encoded bytes, one version counter, and recent events for watches that resume."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Protocol

import msgspec

from spinney.api.meta import Json, encode

Fields = Mapping[str, str]
NO_LABELS: Mapping[str, str] = {}
# What a table remembers for watches that resume, whichever is reached first, and what all of them remember together.
HISTORY_EVENTS = 4096
HISTORY_BYTES = 64 << 20
MOST_HISTORY_BYTES = 192 << 20
# As etcd's limit of one request.
MOST_BYTES = 1536 << 10
# What all objects may take, as etcd's quota; each counts with what caches keep of it beside its bytes.
SPACE = 2 << 30
_OVERHEAD = 16 << 10
# Above the quota nothing is created, and this far above it nothing grows: status can still be written, objects deleted.
_RESERVE = 1.1


class Item(msgspec.Struct, frozen=True, gc=False):
    """One object at one version: its bytes, and what is read often enough not to decode them."""

    key: str  # namespace/name, or the name alone
    version: int
    body: bytes
    uid: str
    labels: Mapping[str, str]
    fields: Fields
    owners: tuple[str, ...] = ()
    # Whether it is being deleted, and who has to let it go first.
    going: bool = False
    finalizers: tuple[str, ...] = ()

    @property
    def namespace(self) -> str:
        """The namespace, empty for cluster-scoped kinds."""
        return self.key.partition("/")[0] if "/" in self.key else ""

    @property
    def name(self) -> str:
        """The name."""
        return self.key.rpartition("/")[2]


def load(item: Item) -> Json:
    """The object as plain data, at its stored version."""
    document: Json = msgspec.json.decode(item.body)
    return document


class Event(msgspec.Struct, frozen=True, gc=False):
    """One write: `old` is None for a new object; if `deleted`, `new` is the object's last state."""

    version: int
    new: Item
    old: Item | None
    deleted: bool = False


class NotStored(Exception):
    """A limit of the store keeps an object out; the message is etcd's."""


class TooLarge(NotStored):
    """One object is larger than any may be."""


class TooOld(Exception):
    """The version is older than the remembered events."""


_RETRY_SECONDS = 1.0


class NotDurable(Exception):
    """What was written cannot be made durable now: the disk is full, or fails."""


class Journal(Protocol):
    """Makes writes durable; the store works without one."""

    # Whether the last attempt failed.
    failing: bool

    def append(self, table: str, item: Item, deleted: bool) -> None:
        """Add a write to the batch that `durable` waits for."""

    async def durable(self) -> None:
        """Wait until everything appended so far is durable; raises NotDurable."""


class Table:
    """All objects of one resource, in key order, with the last writes to them, bounded in number and bytes."""

    def __init__(self, window: int, history_bytes: int = HISTORY_BYTES) -> None:
        self.items: dict[str, Item] = {}
        self.keys: list[str] = []
        self.events: deque[Event] = deque()
        self._window = window
        self._most_bytes = history_bytes
        self.event_bytes = 0
        # Every event after this version is remembered.
        self.floor = 0
        self.last = 0
        self.listeners: list[Callable[[Event], None]] = []

    def add(self, event: Event) -> int:
        """Apply one write and tell the listeners; by how many bytes the remembered events have grown."""
        key, before = event.new.key, self.event_bytes
        if event.deleted:
            del self.items[key]
            del self.keys[bisect_left(self.keys, key)]
        else:
            if event.old is None:
                insort(self.keys, key)
            self.items[key] = event.new
        self.events.append(event)
        self.event_bytes += _remembered(event)
        while len(self.events) > self._window or self.event_bytes > self._most_bytes:
            self.forget_oldest()
        self.last = event.version
        grown = self.event_bytes - before
        for listener in tuple(self.listeners):
            listener(event)
        return grown

    def forget(self, version: int) -> None:
        """Drop the remembered events; `version` is the store's."""
        self.events.clear()
        self.event_bytes = 0
        self.floor = version

    def forget_oldest(self) -> None:
        """Drop the oldest of the remembered events."""
        oldest = self.events.popleft()
        self.event_bytes -= _remembered(oldest)
        self.floor = oldest.version

    def range(self, namespace: str, after: str = "") -> Iterator[Item]:
        """Objects in key order, of one namespace or all, after a key."""
        prefix = f"{namespace}/" if namespace else ""
        start = bisect_left(self.keys, max(prefix, after))
        for position in range(start, len(self.keys)):
            key = self.keys[position]
            if not key.startswith(prefix):
                return
            if key != after:
                yield self.items[key]

    def at(self, version: int) -> dict[str, Item]:
        """All objects as they were at an earlier version."""
        past = dict(self.items)
        for event in reversed(self.since(version)):
            if event.old is None:
                past.pop(event.new.key, None)
            else:
                past[event.new.key] = event.old
        return past

    def since(self, version: int) -> list[Event]:
        """The writes after a version, oldest first."""
        if version < self.floor:
            raise TooOld
        events: list[Event] = []
        for event in reversed(self.events):
            if event.version <= version:
                break
            events.append(event)
        events.reverse()
        return events


def _remembered(event: Event) -> int:
    """The bytes that an event keeps; of an update, also those of the object before."""
    return len(event.new.body) + (len(event.old.body) if event.old is not None else 0)


class Store:
    """Every table, under one version counter."""

    def __init__(self, window: int = HISTORY_EVENTS, journal: Journal | None = None, space: int = SPACE) -> None:
        self.version = 1
        self.used = 0
        self.space = space
        self.tables: dict[str, Table] = {}
        self.journal = journal
        self.listeners: list[Callable[[str, Event], None]] = []
        self._window = window
        self._history_bytes = 0

    def table(self, name: str) -> Table:
        """The table of a resource, by `group/plural`."""
        existing = self.tables.get(name)
        if existing is None:
            existing = self.tables[name] = Table(self._window)
        return existing

    def get(self, table: str, key: str) -> Item | None:
        """One object."""
        rows = self.tables.get(table)
        return None if rows is None else rows.items.get(key)

    def put_within_limits(self, table: str, key: str, document: Json, fields: Fields) -> Item:
        """Write an object of a client, unless it or all objects together become too large."""
        item = self._stamp(key, document, fields)
        if len(item.body) > MOST_BYTES:
            raise TooLarge("etcdserver: request is too large")
        event = Event(item.version, item, self.get(table, key))
        if self.used + len(item.body) + _OVERHEAD > self.space and not self._may_grow(event):
            raise NotStored("etcdserver: mvcc: database space exceeded")
        self._commit(table, event)
        return item

    def put(self, table: str, key: str, document: Json, fields: Fields) -> Item:
        """Write an object under the next version; the version is set in the document."""
        item = self._stamp(key, document, fields)
        self._commit(table, Event(item.version, item, self.get(table, key)))
        return item

    def delete(self, table: str, key: str, document: Json) -> Item:
        """Remove an object; the document is its last state, which watchers see."""
        old = self.table(table).items[key]
        item = self._stamp(key, document, old.fields)
        self._commit(table, Event(item.version, item, old, deleted=True))
        return item

    def restore(self, table: str, item: Item) -> None:
        """Put back an object from a journal; keys come in order."""
        rows = self.table(table)
        rows.items[item.key] = item
        rows.keys.append(item.key)
        self.used += len(item.body) + _OVERHEAD

    def resume(self, table: str, last: int) -> None:
        """Continue counting after the last change to a table; earlier events are not remembered."""
        rows = self.table(table)
        rows.keys.sort()
        rows.floor = rows.last = last
        self.version = max(self.version, last)

    def forget(self) -> None:
        """Drop the remembered events of every table."""
        for table in self.tables.values():
            table.forget(self.version)
        self._history_bytes = 0

    def _may_grow(self, event: Event) -> bool:
        """Whether a write that a new object's size would not allow is one to an object that may grow so far."""
        growth = _growth(event)
        return event.old is not None and (growth <= 0 or self.used + growth <= self.space * _RESERVE)

    def _stamp(self, key: str, document: Json, fields: Fields) -> Item:
        version = self.version + 1
        metadata = document["metadata"]
        metadata["resourceVersion"] = str(version)
        owners = metadata.get("ownerReferences")
        return Item(
            key,
            version,
            encode(document),
            metadata["uid"],
            metadata.get("labels") or NO_LABELS,
            fields,
            tuple([owner.get("uid", "") for owner in owners]) if owners else (),
            bool(metadata.get("deletionTimestamp")),
            tuple(metadata.get("finalizers") or ()),
        )

    def _commit(self, table: str, event: Event) -> None:
        self.version = event.version
        self.used += _growth(event)
        if self.journal is not None:
            self.journal.append(table, event.new, event.deleted)
        self._history_bytes += self.table(table).add(event)
        if self._history_bytes > MOST_HISTORY_BYTES:
            self._shorten_history()
        for listener in self.listeners:
            listener(table, event)

    def _shorten_history(self) -> None:
        while self._history_bytes > MOST_HISTORY_BYTES:
            longest = max(self.tables.values(), key=attrgetter("event_bytes"))
            before = longest.event_bytes
            # Many at once: with a full history each write would ask all tables.
            for _ in range(1 + len(longest.events) // 8):
                longest.forget_oldest()
            self._history_bytes += longest.event_bytes - before

    async def durable(self) -> None:
        """Wait until every write so far is durable; raises NotDurable."""
        if self.journal is not None:
            await self.journal.durable()

    async def until_durable(self) -> None:
        """Wait until every write so far is durable, however long the disk has no room."""
        while True:
            try:
                return await self.durable()
            except NotDurable:
                await asyncio.sleep(_RETRY_SECONDS)


def _growth(event: Event) -> int:
    """By how much a write changes the space that objects take."""
    before = len(event.old.body) + _OVERHEAD if event.old is not None else 0
    return -before if event.deleted else len(event.new.body) + _OVERHEAD - before
