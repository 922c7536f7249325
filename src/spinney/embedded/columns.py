"""The columns that people see in `kubectl get`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.kinds import Kind


@dataclass(frozen=True)
class Columns:
    """Headers, and the cells of one object."""

    headers: tuple[Json, ...]
    cells: Callable[[Json, datetime], list[Any]]


def header(name: str, kind: str = "string", priority: int = 0, form: str = "") -> Json:
    """One column's definition."""
    return {"name": name, "type": kind, "format": form, "description": name, "priority": priority}


def age(stamp: str | None, now: datetime) -> str:
    """How long ago, as kubectl writes it."""
    if not stamp:
        return "<unknown>"
    seconds = int((now - datetime.fromisoformat(stamp)).total_seconds())
    return duration(max(seconds, 0))


def duration(seconds: int) -> str:
    """A span in the two largest units that matter."""
    if seconds < 120:
        return f"{seconds}s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 10:
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours, rest = divmod(minutes, 60)
    if hours < 8:
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days, rest = divmod(hours, 24)
    if hours < 192:
        return f"{days}d{rest}h" if rest else f"{days}d"
    if days < 730:
        return f"{days}d"
    years, rest = divmod(days, 365)
    if years < 8:
        return f"{years}y{rest}d" if rest else f"{years}y"
    return f"{years}y"


def _plain(document: Json, now: datetime) -> list[Any]:
    metadata = document["metadata"]
    return [metadata["name"], age(metadata.get("creationTimestamp"), now)]


def for_kind(kind: Kind) -> Columns:
    """The columns of a kind."""
    return Columns((header("Name", form="name"), header("Age")), _plain)
