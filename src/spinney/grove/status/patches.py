"""Status patches: only members that differ, and conditions with the times at which they changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from spinney.api.conditions import as_json, merged
from spinney.api.meta import Condition, Json, Struct


def difference(stored: Struct, wanted: Json) -> Json:
    """The members of a wanted status that differ from the stored one; null removes a member."""
    known: Json = msgspec.to_builtins(stored)
    return {name: value for name, value in wanted.items() if _compact(known.get(name)) != _compact(value)}


def _compact(value: Any) -> Any:
    """Plain data without members that are absent on the wire: null, zero, empty."""
    if isinstance(value, dict):
        kept = {key: _compact(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None} or None
    if isinstance(value, list | tuple):
        return [_compact(item) for item in value] or None
    return value or None


def merge_conditions(
    existing: Sequence[Condition], wanted: Iterable[Condition], now: datetime, first: datetime | None = None
) -> list[Json]:
    """All conditions to write: ours as wanted, others' as they are; a time moves only where a status changes.

    `first` is the time of a condition that was not there before. The object's creation time there tells "so from the
    start" from "changed later".
    """
    return as_json(merged(existing, wanted, now, first=first))
