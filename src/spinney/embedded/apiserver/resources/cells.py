"""Cells of `kubectl get` that several kinds share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import msgspec

from spinney.api.meta import Json
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources import ages

_SHOWN = 3


def name(document: Json) -> str:
    """The name."""
    return str(document["metadata"]["name"])


def age(document: Json, now: datetime) -> str:
    """The age."""
    return ages.age(document["metadata"].get("creationTimestamp"), now)


def plain(document: Json, now: datetime) -> list[Any]:
    """Name and age."""
    return [name(document), age(document, now)]


def created(document: Json, now: datetime) -> list[Any]:
    """Name and time of creation."""
    return [name(document), document["metadata"].get("creationTimestamp")]


def members(*paths: str) -> Callable[[Json, datetime], list[Any]]:
    """Name, the members at some dotted paths, and age."""
    key_lists = [path.split(".") for path in paths]

    def cells(document: Json, now: datetime) -> list[Any]:
        return [name(document), *(_at(document, keys) for keys in key_lists), age(document, now)]

    return cells


def _at(node: Any, keys: list[str]) -> Any:
    for key in keys:
        node = (node or {}).get(key)
    return "" if node is None else node


def spec(document: Json) -> Json:
    """The spec, empty where there is none."""
    return document.get("spec") or {}


def status(document: Json) -> Json:
    """The status, empty where there is none."""
    return document.get("status") or {}


def true_conditions(status: Json) -> set[str]:
    """The types of the conditions that are True."""
    return {entry.get("type", "") for entry in status.get("conditions") or () if entry.get("status") == "True"}


def or_none(items: Iterable[Any]) -> str:
    """Items in one cell, separated by commas."""
    return ",".join(str(item) for item in items) or "<none>"


def containers(spec: Json) -> list[str]:
    """Names and images of a template's containers."""
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    return [
        ",".join(container.get("name", "") for container in containers),
        ",".join(container.get("image", "") for container in containers),
    ]


def selector(spec: Json) -> str:
    """The label selector in one cell."""
    return selectors.formatted(spec.get("selector")) or "<none>"


def compact(value: Any) -> str:
    """A map or list in one cell."""
    return msgspec.json.encode(value).decode()


def some(items: list[str]) -> str:
    """The first three items, and how many more there are."""
    more = len(items) - _SHOWN
    return ",".join(items[:_SHOWN]) + (f" + {more} more..." if more > 0 else "")


def load_balancer_addresses(document: Json) -> list[str]:
    """The addresses of a load balancer."""
    entries = (status(document).get("loadBalancer") or {}).get("ingress") or ()
    return sorted({entry.get("ip") or entry.get("hostname") or "" for entry in entries} - {""})


def given(parts: Iterable[str | None]) -> Iterable[str]:
    """The parts that are not empty."""
    return (part for part in parts if part)
