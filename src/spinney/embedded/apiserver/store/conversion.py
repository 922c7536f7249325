"""Versions: an object is kept at one of them and shown at the one that was asked for."""

from __future__ import annotations

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.store.store import Item, load


def present(kind: Kind, item: Item) -> bytes:
    """The object as the kind's version shows it."""
    if kind.stored == kind.api_version and not _stale(kind, item):
        return item.body
    return encode(current(kind, item))


def _stale(kind: Kind, item: Item) -> bool:
    """Whether the kind's schema is newer than the object."""
    return kind.custom is not None and item.version < kind.custom.since


def current(kind: Kind, item: Item) -> Json:
    """The object at the kind's version, as its schema is now."""
    document = shown(kind, load(item))
    if kind.custom is None:
        return document
    if _stale(kind, item):
        return kind.custom.conform(kind.version, document)[0]
    return document if kind.stored == kind.api_version else kind.custom.pruned(kind.version, document)


def shown(kind: Kind, document: Json) -> Json:
    """A kept object at the kind's version."""
    if kind.stored == kind.api_version:
        return document
    document["apiVersion"] = kind.api_version
    return document if kind.other is None else kind.other.from_stored(document)


def kept(kind: Kind, document: Json) -> Json:
    """An object at the kind's version, as it is kept."""
    if kind.stored == kind.api_version:
        return document
    document["apiVersion"] = kind.stored
    version = kind.stored.rpartition("/")[2]
    if kind.custom is not None and version in kind.custom.versions:
        return kind.custom.conform(version, document)[0]
    return document if kind.other is None else kind.other.to_stored(document)
