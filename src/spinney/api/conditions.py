"""Status conditions: find one, and change a list so that unchanged ones keep their time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from spinney.api.meta import Condition, Json
from spinney.api.times import rfc3339

TRUE = "True"
FALSE = "False"
UNKNOWN = "Unknown"


def find(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of a type, if there."""
    return next((condition for condition in conditions if condition.type == type_), None)


def is_true(conditions: Iterable[Condition], type_: str) -> bool:
    """Whether a condition is there and True."""
    found = find(conditions, type_)
    return found is not None and found.status == TRUE


def put(conditions: Iterable[Condition], new: Condition, now: datetime) -> tuple[Condition, ...]:
    """The list with one condition set in its place; its transition time moves only when its status does."""
    kept = tuple(conditions)
    old = find(kept, new.type)
    since = old.last_transition_time if old and old.status == new.status else None
    stamped = Condition(
        type=new.type,
        status=new.status,
        observed_generation=new.observed_generation,
        last_transition_time=since or new.last_transition_time or now,
        reason=new.reason,
        message=new.message,
    )
    if old is None:
        return (*kept, stamped)
    return tuple(stamped if condition.type == new.type else condition for condition in kept)


def drop(conditions: Iterable[Condition], type_: str) -> tuple[Condition, ...]:
    """The list without the conditions of a type."""
    return tuple(condition for condition in conditions if condition.type != type_)


def wire(conditions: Iterable[Condition]) -> list[Json]:
    """The list as a patch carries it: every required member written, times in whole seconds."""
    return [_wire(condition) for condition in conditions]


def _wire(condition: Condition) -> Json:
    written: Json = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }
    if condition.last_transition_time:
        written["lastTransitionTime"] = rfc3339(condition.last_transition_time)
    if condition.observed_generation:
        written["observedGeneration"] = condition.observed_generation
    return written
