"""Status patches: only what differs, conditions with the times they turned, nothing where nothing changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from spinney.api.conditions import find
from spinney.api.meta import Condition, Json, Struct
from spinney.kube.clock import seconds
from spinney.kube.conditions import as_json


def difference(stored: Struct, wanted: Json) -> Json:
    """The members of a wanted status that say something else than the stored one; null there removes a member."""
    known: Json = msgspec.to_builtins(stored)
    return {name: value for name, value in wanted.items() if _essence(known.get(name)) != _essence(value)}


def _essence(value: Any) -> Any:
    """Plain data without members that are absent on the wire: null, zero, empty."""
    if isinstance(value, dict):
        kept = {key: _essence(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None} or None
    if isinstance(value, list | tuple):
        return [_essence(item) for item in value] or None
    return value or None


def turned(
    existing: Sequence[Condition], wanted: Iterable[Condition], now: datetime, first: datetime | None = None
) -> list[Json]:
    """All conditions to write: ours as wanted, others' as they are; a time moves only where a status turns.

    `first` is the time of a condition that was never there: an object's creation, where "it was like this from the
    start" must be told from "it turned".
    """
    moment = seconds(now)
    result = {found.type: found for found in existing}
    for want in wanted:
        known = find(existing, want.type)
        if known is None:
            since = first or moment
        else:
            since = (known.last_transition_time or moment) if known.status == want.status else moment
        result[want.type] = msgspec.structs.replace(want, last_transition_time=since)
    return as_json(result.values())
