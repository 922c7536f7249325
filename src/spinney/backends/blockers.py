"""Why a gang waits, from everything that its scheduler says: one answer for conditions, `status` and `explain`.

Our own scheduler knows by how much a gang does not fit. Of the others we only know what they write: on their objects,
which the backend copies, on pods and placeholders, and in events. Where they write nothing, that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spinney.api import reasons
from spinney.api.conditions import find, is_true
from spinney.api.core import Event
from spinney.api.labels import ALLOW_DOWNGRADE, PODCLIQUE
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.refusals import most_telling, names_nodes
from spinney.backends.gang_pods import alive, bound, refusal
from spinney.backends.interface import Backend

# What helps where the condition BackendReady is False; its message tells the rest.
_ADVICE = {
    reasons.NOT_SERVED: "install the scheduler's CRDs, or enable the API that the message names",
    reasons.NOT_EXPRESSIBLE: f'choose another backend, or set {ALLOW_DOWNGRADE}: "true" on the set',
    reasons.SETUP_MISSING: f'set the scheduler up as the message says, or set {ALLOW_DOWNGRADE}: "true" on the set',
    reasons.QUEUE_NOT_FOUND: "create the queue, or name another one on the set",
    reasons.SCHEDULER_SILENT: "check that the scheduler runs under the pods' schedulerName",
    reasons.NAME_TAKEN: "delete or rename the object that has the name",
    reasons.DOES_NOT_FIT_YET: "free capacity, or add nodes",
    reasons.WAITS_FOR_OTHER_GANG: "wait: nobody overtakes the gang whose turn is next",
}


@dataclass(frozen=True)
class Seen:
    """What was read about a gang: its pods, its placeholders, and events about all of them."""

    gang: PodGang
    pods: Sequence[Pod] = ()
    placeholders: Sequence[Pod] = ()
    events: Sequence[Event] = ()


@dataclass(frozen=True)
class Blocker:
    """The one reason why a gang, or the rest of it, is not placed; advice is what helps."""

    code: str
    text: str
    advice: tuple[str, ...] = ()


def blocker(backend: Backend | None, seen: Seen) -> Blocker | None:
    """What blocks a gang; None if all its pods are placed."""
    pods = [pod for pod in seen.pods if alive(pod)]
    if is_true(seen.gang.status.conditions, reasons.SCHEDULED):
        return _surplus(pods, seen)
    return _not_released(backend, seen) or _with_scheduler(backend, pods, seen)


def _not_released(backend: Backend | None, seen: Seen) -> Blocker | None:
    """Why the scheduler does not have the gang yet."""
    conditions = seen.gang.status.conditions
    ready = find(conditions, reasons.BACKEND_READY)
    if ready is None:
        called = f"backend {backend.name}" if backend is not None else "its backend"
        text = f"{called} has not looked at the gang"
        return Blocker(reasons.BACKEND_NOT_READY, text, ("check that `spinney run backends` runs",))
    if ready.status != "True":
        return Blocker(ready.reason, ready.message, tuple(filter(None, (_ADVICE.get(ready.reason, ""),))))
    scheduled = find(conditions, reasons.SCHEDULED)
    if scheduled is not None and scheduled.reason != reasons.WAITING_FOR_SCHEDULER:
        return Blocker(scheduled.reason or reasons.BACKEND_NOT_READY, scheduled.message)
    return None


def _with_scheduler(backend: Backend | None, pods: Sequence[Pod], seen: Seen) -> Blocker:
    """What the scheduler says about a gang that it has."""
    name = next((pod.spec.scheduler_name for pod in pods), backend.scheduler_name("") if backend is not None else "")
    progress = ", ".join(
        f"{group.name} {_placed(group.name, pods)} of {group.min_replicas}"
        for group in seen.gang.spec.podgroups
        if _placed(group.name, pods) < group.min_replicas
    )
    report = _joined(_copied_report(seen.gang), _report(seen))
    if report:
        return Blocker(reasons.WAITING_FOR_SCHEDULER, f"on nodes: {progress}; {name} says: {report}")
    text = f"on nodes: {progress}; {name} has the gang and has said nothing about it: only {name} knows why it waits"
    return Blocker(reasons.WAITING_FOR_SCHEDULER, text, (f"look at the log of {name}",))


def _joined(copied: str, said: str) -> str:
    """Both texts; only one if it contains the other, or if the scheduler names nodes."""
    if names_nodes(said) or copied in said:
        return said
    return copied if said in copied else f"{copied}; {said}"


def _copied_report(gang: PodGang) -> str:
    """What the backend has copied from the scheduler's objects, and from pods and placeholders."""
    ready = find(gang.status.conditions, reasons.BACKEND_READY)
    return ready.message if ready is not None and ready.reason == reasons.SCHEDULER_REPORTS else ""


def _surplus(pods: Sequence[Pod], seen: Seen) -> Blocker | None:
    waiting = [pod for pod in pods if not bound(pod)]
    if not waiting:
        return None
    report = pod_report(waiting) or placeholder_report(seen.placeholders) or "nothing was said about them"
    return Blocker(reasons.SURPLUS_WAITING, f"{len(waiting)} pods beyond the minimum wait: {report}")


def _report(seen: Seen) -> str:
    """What a scheduler says about a gang, from the surest source: its pods, placeholders, events."""
    return pod_report(seen.pods) or placeholder_report(seen.placeholders) or _event_report(seen.events)


def pod_report(pods: Iterable[Pod]) -> str:
    """What a scheduler wrote on the pods that it has not placed, or on those that it failed."""
    return most_telling(map(refusal, pods))


def placeholder_report(placeholders: Sequence[Pod]) -> str:
    """What a scheduler says about the pods that hold the room of a gang."""
    waiting = [pod for pod in placeholders if alive(pod) and not bound(pod)]
    if not waiting:
        return ""
    held = f"{len(placeholders) - len(waiting)} of {len(placeholders)} placeholders hold room"
    said = pod_report(waiting)
    return f"{held}: {said}" if said else held


def _event_report(events: Sequence[Event]) -> str:
    warnings = [event for event in events if event.type == "Warning" and event.message]
    if not warnings:
        return ""
    newest = max(warnings, key=lambda event: str(event.last_timestamp or event.event_time or ""))
    return f"{newest.reason}: {newest.message}"


def _placed(role: str, pods: Iterable[Pod]) -> int:
    return sum(bound(pod) and pod.metadata.labels.get(PODCLIQUE) == role for pod in pods)
