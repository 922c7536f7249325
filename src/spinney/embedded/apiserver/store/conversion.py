"""Conversion between the version that an object is stored at and the one that a client uses."""

from __future__ import annotations

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.store.store import Item, load


def encoded_for(kind: Kind, item: Item) -> bytes:
    """The encoded object at the kind's version."""
    if kind.stored == kind.api_version and (kind.custom is None or not _stale(kind, item)):
        return item.body
    return encode(at_current_version(kind, item))


def _stale(kind: Kind, item: Item) -> bool:
    """Whether the kind's schema is newer than the object."""
    return kind.custom is not None and item.version < kind.custom.since


def at_current_version(kind: Kind, item: Item) -> Json:
    """The object at the kind's version, as its schema is now."""
    document = from_stored(kind, load(item))
    if kind.custom is None:
        return document
    if _stale(kind, item):
        return kind.custom.conform(kind.version, document)[0]
    return document if kind.stored == kind.api_version else kind.custom.pruned(kind.version, document)


def from_stored(kind: Kind, document: Json) -> Json:
    """A stored object, converted to the kind's version."""
    if kind.stored == kind.api_version:
        return document
    document["apiVersion"] = kind.api_version
    return document if kind.other is None else kind.other.from_stored(document)


def to_stored(kind: Kind, document: Json) -> Json:
    """An object at the kind's version, converted to the stored version."""
    if kind.stored == kind.api_version:
        return document
    document["apiVersion"] = kind.stored
    version = kind.stored.rpartition("/")[2]
    if kind.custom is not None and version in kind.custom.versions:
        return kind.custom.conform(version, document)[0]
    return document if kind.other is None else kind.other.to_stored(document)
