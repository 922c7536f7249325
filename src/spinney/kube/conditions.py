"""Which conditions to write: ours as we want them, others' as they are, times moved only where a status turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from spinney.api.meta import Condition, Json
from spinney.kube.clock import Clock, seconds


def condition(type: str, status: bool | str, reason: str, message: str = "", observed_generation: int = 0) -> Condition:
    """A condition as we want it; its time comes from `merged`."""
    if isinstance(status, bool):
        status = "True" if status else "False"
    return Condition(type=type, status=status, reason=reason, message=message, observed_generation=observed_generation)


def find(conditions: Iterable[Condition], type: str) -> Condition | None:
    """The condition of a type."""
    return next((found for found in conditions if found.type == type), None)


def is_true(conditions: Iterable[Condition], type: str) -> bool:
    """Whether a condition is there and True."""
    found = find(conditions, type)
    return found is not None and found.status == "True"


def merged(
    existing: Sequence[Condition], wanted: Iterable[Condition], clock: Clock, drop: Iterable[str] = ()
) -> tuple[Condition, ...] | None:
    """The whole list to write, or None where it already says so.

    A condition keeps its time while its status stays; conditions of others stay as they are and where they are.
    `drop` names types that go.
    """
    now = seconds(clock.now())
    dropped = set(drop)
    result = {found.type: found for found in existing if found.type not in dropped}
    for want in wanted:
        known = result.get(want.type)
        since = known.last_transition_time if known is not None and known.status == want.status else now
        result[want.type] = msgspec.structs.replace(want, last_transition_time=since or now)
    after = tuple(result.values())
    return None if after == tuple(existing) else after


def as_json(conditions: Iterable[Condition]) -> list[Json]:
    """Conditions as plain data, with the members that Kubernetes requires even where they are empty."""
    return [{"message": "", **_plain(found)} for found in conditions]


def _plain(found: Condition) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(found)
    return plain
