"""Watches: a stream of the events after a version, and of new ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice

import structlog

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.calls import Call, flag, number, version_number
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import Refusal, expired, forbidden_field, invalid_options, unsupported
from spinney.embedded.apiserver.http.content_types import JSON, LISTS, OBJECT, PARTIAL, PARTIALS, TABLE, representation
from spinney.embedded.apiserver.kubectl import table
from spinney.embedded.apiserver.read.get_list import matcher
from spinney.embedded.apiserver.store.conversion import encoded_for
from spinney.embedded.apiserver.store.store import Event, Item, Table, TooOld, load
from spinney.kube.client.transport import Response

# A watcher this far behind is disconnected, as in Kubernetes; it can resume.
BACKLOG = 20_000
BACKLOG_BYTES = 64 << 20
# What is sent at once of the first events, which may be all objects.
_PART = 256 << 10
_log = structlog.get_logger("spinney.embedded")


class Watch:
    """The event stream of one watcher."""

    def __init__(self, core: Core, call: Call, on_end: Callable[[Watch], None]) -> None:
        self._core = core
        self._call = call
        self._on_end = on_end
        self._passes = matcher(call)
        self._prefix = f"{call.namespace}/" if call.namespace else ""
        self._table = core.store.table(call.kind.table)
        self._form = representation(call.request.headers.get("accept", ""), LISTS)
        if self._form == TABLE:
            table.included(call)
        # Encoded when they are read: otherwise each of many watches would hold a copy of all objects.
        self._first: Iterator[bytes] = iter(())
        self._lines: list[bytes] = []
        self._size = 0
        self._waiting: asyncio.Future[None] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._open = True
        self._columns_sent = False

    def start(self, initial: list[Item] | None, missed: list[Event]) -> None:
        """Begin with these events, and listen for others."""
        self._first = self._first_lines(initial or [], missed)
        if self._form == TABLE:
            # The columns go with the first event, also where others come before anybody has read it.
            self._first = chain(tuple(islice(self._first, 1)), self._first)
        self._table.listeners.append(self._on_event)

    def _first_lines(self, initial: list[Item], missed: list[Event]) -> Iterator[bytes]:
        for item in initial:
            if item.key.startswith(self._prefix) and (self._passes is None or self._passes(item)):
                yield self._written("ADDED", item)
        for event in missed:
            line = self._line_of(event)
            if line is not None:
                yield line

    def _on_event(self, event: Event) -> None:
        try:
            line = self._line_of(event)
        except Exception:
            # A defect in what one watcher is told must not fail the write, nor keep it from the others.
            _log.exception("watch.failed", path=self._call.request.path)
            self.end()
            return
        if line is not None:
            self._push(line)

    def _line_of(self, event: Event) -> bytes | None:
        """What this watcher is told of a write, if anything."""
        if self._prefix and not event.new.key.startswith(self._prefix):
            return None
        passes, old, new = self._passes, event.old, event.new
        if passes is None:
            return self._written("DELETED" if event.deleted else "MODIFIED" if old else "ADDED", new)
        before = old is not None and passes(old)
        after = not event.deleted and passes(new)
        if before and after:
            return self._written("MODIFIED", new)
        if after:
            return self._written("ADDED", new)
        if before:
            return self._written("DELETED", new if event.deleted else _at_version(old, event.version))
        return None

    def _written(self, kind: str, item: Item) -> bytes:
        return _line(kind, self._body(item))

    def _body(self, item: Item) -> bytes:
        if self._form == OBJECT:
            return encoded_for(self._call.kind, item)
        if self._form == TABLE:
            first, self._columns_sent = not self._columns_sent, True
            return table.of_item(self._core, self._call, item, include_columns=first)
        return table.partial(item)

    def bookmark(self, initial_events_end: bool = False) -> None:
        """Send a bookmark with the current version."""
        metadata: Json = {"resourceVersion": str(self._core.store.version)}
        if initial_events_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        kind = self._call.kind
        note: Json = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        if self._form == TABLE:
            note = table.bookmark(kind, metadata, self._core.clock.now())
        elif self._form in (PARTIAL, PARTIALS):
            note.update({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"})
        self._push(b'{"type":"BOOKMARK","object":' + encode(note) + b"}\n")

    def fail(self, refusal: Refusal) -> None:
        """Send an error and end."""
        self._push(b'{"type":"ERROR","object":' + encode(refusal.body()) + b"}\n")
        self.end()

    def every(self, seconds: float, action: Callable[[], None]) -> None:
        """Repeat an action while the watch is open."""
        loop = asyncio.get_running_loop()

        def again() -> None:
            if self._open:
                action()
                self._timers[:] = [loop.call_later(seconds, again)]

        self._timers.append(loop.call_later(seconds, again))

    def end_after(self, seconds: float) -> None:
        """End the stream after some time."""
        self._timers.append(asyncio.get_running_loop().call_later(seconds, self.end))

    def _push(self, line: bytes) -> None:
        if not self._open:
            return
        self._lines.append(line)
        self._size += len(line)
        if len(self._lines) > BACKLOG or self._size > BACKLOG_BYTES:
            self.end()
        elif self._waiting is not None:
            self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
        self._waiting = None

    def end(self) -> None:
        """Stop listening; what is queued can still be read."""
        if not self._open:
            return
        self._open = False
        if self._on_event in self._table.listeners:
            self._table.listeners.remove(self._on_event)
        self._on_end(self)
        for timer in self._timers:
            timer.cancel()
        self._wake()

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> bytes:
        first = self._next_first()
        while not first and not self._lines:
            if not self._open:
                raise StopAsyncIteration
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            except BaseException:
                self.end()
                raise
        if self._core.store.journal is not None:
            await self._core.store.until_durable()
        if sum(map(len, first)) > _PART:
            # There may be more of them, and events come after all of these.
            return b"".join(first)
        chunk = b"".join((*first, *self._lines))
        self._lines.clear()
        self._size = 0
        return chunk

    def _next_first(self) -> list[bytes]:
        """The next of the first events: a part's length and one more, or all that are left."""
        lines: list[bytes] = []
        size = 0
        for line in self._first:
            lines.append(line)
            size += len(line)
            if size > _PART:
                break
        return lines

    async def aclose(self) -> None:
        """End the watch from the reader's side."""
        self.end()


@lru_cache(maxsize=8)
def _line(kind: str, body: bytes) -> bytes:
    """One encoded event, cached because all watchers of a write share it."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)


def _at_version(item: Item | None, version: int) -> Item:
    """The last state that matched a selector, with the version at which the object stopped matching."""
    assert item is not None
    document = load(item)
    document["metadata"]["resourceVersion"] = str(version)
    return Item(item.key, version, encode(document), item.uid, item.labels, item.fields, item.owners)


class Watches:
    """The open watches of a server."""

    def __init__(self, core: Core, bookmark_seconds: float) -> None:
        self._core = core
        self._bookmark_seconds = bookmark_seconds
        self._open: set[Watch] = set()

    def open(self, call: Call) -> Response:
        """Open a watch, and answer with its stream."""
        query = call.query
        seconds = number(query.get("timeoutSeconds", ""))
        stream = Watch(self._core, call, self._open.discard)
        streaming_list = _wants_initial(query.get("sendInitialEvents"), query)
        version = version_number(query.get("resourceVersion", ""))
        self._open.add(stream)
        table_ = self._core.store.table(call.kind.table)
        if not version or streaming_list:
            wanted = streaming_list is not False
            stream.start(list(table_.range(call.namespace)) if wanted else None, [])
        else:
            _resume(table_, stream, version)
        if streaming_list and flag(query, "allowWatchBookmarks"):
            stream.bookmark(initial_events_end=True)
        if flag(query, "allowWatchBookmarks") and self._bookmark_seconds:
            stream.every(self._bookmark_seconds, stream.bookmark)
        if seconds:
            stream.end_after(float(seconds))
        return Response(200, b"", JSON, stream)

    def end(self) -> None:
        """End every watch, because the server stops."""
        for stream in tuple(self._open):
            stream.end()


def _resume(events: Table, stream: Watch, version: int) -> None:
    try:
        stream.start(None, events.since(version))
    except TooOld:
        stream.fail(expired("The resourceVersion for the provided watch is too old."))


def _wants_initial(value: str | None, query: Mapping[str, str]) -> bool | None:
    match = query.get("resourceVersionMatch", "")
    if value is None:
        if match:
            rule = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            raise invalid_options("ListOptions", [forbidden_field("resourceVersionMatch", rule)])
        return None
    if match != "NotOlderThan":
        field, rule = "resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        errors = [forbidden_field(field, rule)]
        if match:
            errors.append(unsupported(field, match, ("NotOlderThan",)))
        raise invalid_options("ListOptions", errors)
    return flag(query, "sendInitialEvents")
