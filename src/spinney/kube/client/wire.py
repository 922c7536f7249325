"""Decode lists, watch lines and responses to writes: the envelope first, objects only where needed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic, Literal, TypeVar, cast

import msgspec
from msgspec.structs import replace

from spinney.api.meta import Key, Object, decode
from spinney.kube.client.transport import Response
from spinney.kube.client.writes import Write
from spinney.kube.errors import Status, error_for

T = TypeVar("T", bound=Object)

# On the bookmark that ends the initial events of a streaming list.
_INITIAL_END = "k8s.io/initial-events-end"


class Unreadable(msgspec.Struct, frozen=True):
    """An object that does not fit its wire type, and why."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    problem: str

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.namespace, self.name


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """A list and its resource version; objects that cannot be read are set aside."""

    items: list[T]
    resource_version: str
    unreadable: tuple[Unreadable, ...] = ()


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """A watch event. A bookmark has only a resource version; SYNCED is the bookmark that ends a streaming list."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "SYNCED"]
    object: T | None
    resource_version: str
    unreadable: Unreadable | None = None


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Head(msgspec.Struct):
    kind: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _BareMeta(msgspec.Struct, rename="camel"):
    """What an API server fills in itself, so that it can always be read."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class _BareHead(msgspec.Struct):
    metadata: _BareMeta


_list_decoder = msgspec.json.Decoder(_List)
_event_decoder = msgspec.json.Decoder(_Event)
_head_decoder = msgspec.json.Decoder(_Head)


def read_page(of: type[T], body: bytes) -> tuple[Listing[T], str]:
    """One page of a list, and the token for the next; empty after the last."""
    page = _list_decoder.decode(body)
    objects = [_read(of, raw) for raw in page.items or ()]
    items = [item for item in objects if not isinstance(item, Unreadable)]
    unreadable = tuple(item for item in objects if isinstance(item, Unreadable))
    return Listing(items, page.metadata.resource_version, unreadable), page.metadata.continue_


def _read(of: type[T], raw: msgspec.Raw) -> T | Unreadable:
    """The object, or the metadata of one that does not fit its type, so that it does not hide the others."""
    try:
        return decode(of, raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        meta = msgspec.json.decode(raw, type=_BareHead).metadata
        return Unreadable(meta.namespace, meta.name, meta.uid, meta.resource_version, str(error))


async def read_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a stream, whatever their length and the chunks."""
    pending: list[bytes] = []
    async for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        pending.append(first)
        for piece in rest:
            line = b"".join(pending)
            pending = [piece]
            if line:
                yield line


def read_event(of: type[T], line: bytes) -> WatchEvent[T]:
    """Decode a watch line; an ERROR line is raised as its exception."""
    raw = _event_decoder.decode(line)
    if raw.type == "ERROR":
        raise error_for(msgspec.json.decode(raw.object, type=Status))
    if raw.type == "BOOKMARK":
        meta = _head_decoder.decode(raw.object).metadata
        ends = (meta.annotations or {}).get(_INITIAL_END) == "true"
        return WatchEvent("SYNCED" if ends else "BOOKMARK", None, meta.resource_version)
    kind = cast(Literal["ADDED", "MODIFIED", "DELETED"], raw.type)
    item = _read(of, raw.object)
    if isinstance(item, Unreadable):
        return WatchEvent(kind, None, item.resource_version, item)
    return WatchEvent(kind, item, item.metadata.resource_version)


def read_status(response: Response) -> Status:
    """The Status of an error response; proxies respond with plain text."""
    try:
        status = msgspec.json.decode(response.body, type=Status)
    except msgspec.DecodeError:
        status = Status(message=response.body.decode(errors="replace")[:500])
    return msgspec.structs.replace(status, code=response.status)


def read_write(write: Write, body: bytes) -> Write:
    """A write with the version from its response.

    A delete of an object that stays for now, because of finalizers or a grace period, counts as a patch.
    """
    head = _head_decoder.decode(body)
    # A Status, and the answer of most subresources, does not show the object that was written.
    if head.kind != write.resource.kind:
        return write
    meta = head.metadata
    if write.verb != "delete":
        return replace(write, resource_version=meta.resource_version, uid=meta.uid, labels=meta.labels or {})
    if meta.deletion_timestamp is None or (not meta.finalizers and not meta.deletion_grace_period_seconds):
        return replace(write, uid=meta.uid)
    return replace(write, verb="patch", resource_version=meta.resource_version, uid=meta.uid)
