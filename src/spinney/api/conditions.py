"""Status conditions: make, find and merge them; a time moves only where a status changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

import msgspec

from spinney.api.meta import Condition, Json

TRUE = "True"
FALSE = "False"


def condition(type: str, status: bool | str, reason: str, message: str = "", observed_generation: int = 0) -> Condition:
    """A wanted condition; `merged` gives it its time."""
    if isinstance(status, bool):
        status = TRUE if status else FALSE
    return Condition(type=type, status=status, reason=reason, message=message, observed_generation=observed_generation)


def find(conditions: Iterable[Condition], type: str) -> Condition | None:
    """The condition of a type."""
    return next((condition for condition in conditions if condition.type == type), None)


def is_true(conditions: Iterable[Condition], type: str) -> bool:
    """Whether a condition is there and True."""
    condition = find(conditions, type)
    return condition is not None and condition.status == TRUE


def true_since(conditions: Iterable[Condition], type: str) -> datetime | None:
    """Since when a condition is True; None where it is not."""
    condition = find(conditions, type)
    return condition.last_transition_time if condition is not None and condition.status == TRUE else None


def merged(
    existing: Sequence[Condition],
    wanted: Iterable[Condition],
    now: datetime,
    *,
    first: datetime | None = None,
    drop: Collection[str] = (),
) -> tuple[Condition, ...]:
    """The whole list to write: wanted conditions in place, others' as they are, those of types in `drop` removed.

    `first` is the time of a condition that was not there before. The object's creation time there tells "so from the
    start" from "changed later".
    """
    moment = now.replace(microsecond=0)
    result = {condition.type: condition for condition in existing if condition.type not in drop}
    for condition in wanted:
        before = result.get(condition.type)
        if before is None:
            since = first or moment
        else:
            since = (before.last_transition_time if before.status == condition.status else None) or moment
        result[condition.type] = msgspec.structs.replace(condition, last_transition_time=since)
    return tuple(result.values())


def as_json(conditions: Iterable[Condition]) -> list[Json]:
    """Conditions as plain data, with the members that Kubernetes requires even where they are empty."""
    return [{"message": "", **msgspec.to_builtins(condition)} for condition in conditions]
