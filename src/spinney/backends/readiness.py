"""The rule most backends share: a gang is ready when its objects exist, whatever their scheduler says meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spinney.api.meta import Json
from spinney.api.reasons import SYNCED
from spinney.backends.interface import Readiness


def all_exist(found: Sequence[Json], message: str = "") -> Readiness:
    """Ready: the controller calls `ready` only when every wanted object exists for this generation."""
    names = ", ".join(f"{item['kind']} {item['metadata']['name']}" for item in found)
    return Readiness(True, SYNCED, message or f"{names} written" if names else message or "nothing to write")


def condition_message(found: Iterable[Json], *lists: str) -> str:
    """The newest thing a scheduler says in the status of its objects about not placing a gang yet."""
    said = [
        condition
        for item in found
        for name in lists or ("conditions",)
        for condition in (item.get("status") or {}).get(name) or ()
        if _complains(condition)
    ]
    if not said:
        return ""
    newest = max(said, key=lambda condition: str(condition.get("lastTransitionTime") or ""))
    return f"{newest.get('reason') or newest.get('type')}: {newest.get('message') or 'no message'}"


def _complains(condition: Json) -> bool:
    kind, status = str(condition.get("type")), condition.get("status")
    return status == "True" if kind.lower().startswith("unschedulable") else status == "False"
