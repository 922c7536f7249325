"""What the cells of many kinds have in common."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from spinney.api.meta import Json
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources import ages


def name(document: Json) -> str:
    """The name."""
    return str(document["metadata"]["name"])


def age(document: Json, now: datetime) -> str:
    """How long ago it was made."""
    return ages.age(document["metadata"].get("creationTimestamp"), now)


def plain(document: Json, now: datetime) -> list[Any]:
    """Name and age."""
    return [name(document), age(document, now)]


def created(document: Json, now: datetime) -> list[Any]:
    """Name and time of creation."""
    return [name(document), document["metadata"].get("creationTimestamp")]


def spec(document: Json) -> Json:
    """The spec, empty where there is none."""
    return document.get("spec") or {}


def status(document: Json) -> Json:
    """The status, empty where there is none."""
    return document.get("status") or {}


def or_none(items: Iterable[Any]) -> str:
    """Items in one cell."""
    return ",".join(str(item) for item in items) or "<none>"


def containers(spec: Json) -> list[str]:
    """Names and images of a template's containers."""
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    return [
        ",".join(container.get("name", "") for container in containers),
        ",".join(container.get("image", "") for container in containers),
    ]


def selector(spec: Json) -> str:
    """The label selector in one cell; that of a ReplicationController is only labels."""
    given = spec.get("selector") or {}
    if all(isinstance(value, str) for value in given.values()):
        given = {"matchLabels": given}
    return selectors.formatted(given) or "<none>"


def compact(value: Any) -> str:
    """A map or list in one cell."""
    return msgspec.json.encode(value).decode()
