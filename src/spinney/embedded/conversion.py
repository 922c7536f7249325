"""Versions: an object is kept at one of them and shown at the one that was asked for."""

from __future__ import annotations

import msgspec

from spinney.api.meta import Json, encode
from spinney.embedded.kinds import Kind
from spinney.embedded.store import Item


def present(kind: Kind, item: Item) -> bytes:
    """The object as the kind's version shows it."""
    if kind.stored == kind.api_version:
        return item.body
    return encode(shown(kind, load(item)))


def load(item: Item) -> Json:
    """The object as plain data, at the version it is kept at."""
    document: Json = msgspec.json.decode(item.body)
    return document


def shown(kind: Kind, document: Json) -> Json:
    """A kept object at the kind's version."""
    if kind.stored == kind.api_version:
        return document
    document["apiVersion"] = kind.api_version
    return document


def kept(kind: Kind, document: Json) -> Json:
    """An object at the kind's version, as it is kept."""
    if kind.stored == kind.api_version:
        return document
    document["apiVersion"] = kind.stored
    return document
