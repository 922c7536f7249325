"""The rule that most backends share: a gang is ready when its objects exist, whatever their status says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spinney.api.meta import Json
from spinney.api.reasons import SCHEDULER_REPORTS, SYNCED
from spinney.backends.interface import Readiness


def all_exist(objects: Sequence[Json], report: str = "") -> Readiness:
    """Ready, with what the scheduler reports: `ready` is called only when every wanted object exists."""
    if report:
        return Readiness(True, SCHEDULER_REPORTS, report)
    names = ", ".join(f"{item['kind']} {item['metadata']['name']}" for item in objects)
    return Readiness(True, SYNCED, f"{names} written" if names else "nothing to write")


def condition_message(objects: Iterable[Json], *lists: str) -> str:
    """The newest condition in which a scheduler says why it has not placed a gang."""
    complaints = [
        condition
        for item in objects
        for name in lists or ("conditions",)
        for condition in (item.get("status") or {}).get(name) or ()
        if _complains(condition)
    ]
    if not complaints:
        return ""
    newest = max(complaints, key=lambda condition: str(condition.get("lastTransitionTime") or ""))
    return f"{newest.get('reason') or newest.get('type')}: {newest.get('message') or 'no message'}"


def _complains(condition: Json) -> bool:
    kind, status = str(condition.get("type")), condition.get("status")
    return status == "True" if kind.lower().startswith("unschedulable") else status == "False"
