"""The graceful deletion of pods."""

from __future__ import annotations

from datetime import datetime, timedelta

from spinney.api.meta import Json
from spinney.api.times import rfc3339
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.resources.deletion_marks import mark_deleted


def begin(core: Core, pod: Json, finalizers: list[str], options: Json) -> bool:
    """Set the time by which a pod has to stop. A time that was set before can only become earlier."""
    metadata = pod["metadata"]
    grace = _grace(pod, options)
    if not metadata.get("deletionTimestamp"):
        mark_deleted(core, metadata, grace or 0)
    else:
        pending = metadata.get("deletionGracePeriodSeconds")
        if pending and grace is not None and grace < pending:
            _shorten(core, metadata, pending, grace)
    return bool(finalizers) or bool(metadata.get("deletionGracePeriodSeconds"))


def _grace(pod: Json, options: Json) -> int | None:
    """How long a pod may take to stop."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    given = options.get("gracePeriodSeconds")
    if pod["metadata"].get("deletionTimestamp"):
        return None if given is None else max(int(given), 1 if int(given) < 0 else 0)
    if not spec.get("nodeName") or status.get("phase") in ("Failed", "Succeeded"):
        return 0
    period = int(given) if given is not None else int(spec.get("terminationGracePeriodSeconds") or 0)
    return 1 if period < 0 else period


def _shorten(core: Core, metadata: Json, pending: int, grace: int) -> None:
    due = datetime.fromisoformat(metadata["deletionTimestamp"]) + timedelta(seconds=grace - pending)
    now = core.clock.now()
    if due < now:
        due = now
        grace = 1 if grace else 0
    metadata["deletionTimestamp"] = rfc3339(due)
    metadata["deletionGracePeriodSeconds"] = grace
