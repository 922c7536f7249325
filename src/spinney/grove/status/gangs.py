"""A PodGang's status: its phase, its conditions, what it waits for, and its placement score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from spinney.api import reasons
from spinney.api.conditions import find
from spinney.api.core import Node
from spinney.api.meta import Condition, Json
from spinney.api.podgang import PodGang
from spinney.grove.model import gang_members, pod_state
from spinney.grove.model.gang_members import Member
from spinney.grove.model.requests import total_requests
from spinney.grove.model.topology import Levels
from spinney.grove.status.patches import difference, merge_conditions
from spinney.grove.status.score import placement_score


def gang_status(
    stored: PodGang, members: Sequence[Member], conditions: Iterable[Condition], score: float | None, now: datetime
) -> Json:
    """The status as it should be stored; others' conditions stay as they are."""
    status: Json = {"phase": _phase(members), "conditions": merge_conditions(stored.status.conditions, conditions, now)}
    if score is not None:
        status["placementScore"] = score
    return status


def status_patch(stored: PodGang, wanted: Json) -> Json:
    """What to write to have a gang's status as wanted; the schema wants a phase in every status."""
    patch = difference(stored.status, wanted)
    return {"phase": wanted["phase"], **patch} if patch else {}


def gang_score(stored: PodGang, members: Sequence[Member], levels: Levels, nodes: Iterable[Node]) -> float | None:
    """The placement score; none before the gang is placed, and as it was then afterwards."""
    if not gang_members.is_scheduled(members):
        return None
    known = find(stored.status.conditions, reasons.SCHEDULED)
    if known is not None and known.status == "True" and stored.status.placement_score is not None:
        # Nodes that come and go later do not move it.
        return stored.status.placement_score
    pods = [pod for member in members for pod in member.active if pod_state.is_scheduled(pod)]
    by_name = {node.name: node for node in nodes} if levels.keys else {}
    return placement_score(pods, by_name, levels, total_requests(pods))


def _phase(members: Sequence[Member]) -> str:
    """The one word for it: Pending until scheduled, Starting until ready, Running; or how it ended."""
    pods = [pod for member in members for pod in member.active]
    if pods and all(pod_state.is_finished(pod) for pod in pods):
        return reasons.FAILED if any(pod.status.phase == "Failed" for pod in pods) else reasons.SUCCEEDED
    if not gang_members.is_scheduled(members):
        return reasons.PENDING
    return reasons.RUNNING if gang_members.is_ready(members) else reasons.STARTING


def conditions(
    gang: PodGang, members: Sequence[Member], base_scheduled: bool, terminating: bool, last_error: str = ""
) -> list[Condition]:
    """The operator's own conditions of a gang; `last_error` is why its last reconcile failed."""
    return [
        _initialized(gang, members),
        _scheduled(gang, members, base_scheduled, last_error),
        _ready(members),
        _unhealthy(gang, members),
        _disruption(members, terminating),
    ]


def _initialized(gang: PodGang, members: Sequence[Member]) -> Condition:
    known = find(gang.status.conditions, reasons.INITIALIZED)
    if gang_members.is_complete(gang, members) or (known is not None and known.status == "True"):
        message = "every pod of the gang was created and is referenced"
        return Condition(type=reasons.INITIALIZED, status="True", reason=reasons.PODS_CREATED, message=message)
    short = [f"{member.name} has {len(member.active)} of {member.wanted}" for member in members if _short(member)]
    message = f"pods are missing: {', '.join(short)}" if short else "pods are not referenced yet"
    return Condition(type=reasons.INITIALIZED, status="False", reason=reasons.PODS_CREATION_PENDING, message=message)


def _short(member: Member) -> bool:
    return len(member.active) < member.wanted


def _scheduled(gang: PodGang, members: Sequence[Member], base_scheduled: bool, last_error: str) -> Condition:
    if gang_members.is_scheduled(members):
        message = "every pod group has its minimum on nodes"
        return Condition(type=reasons.SCHEDULED, status="True", reason=reasons.PODS_SCHEDULED, message=message)
    reason, message = _waits_for(gang, members, base_scheduled)
    if last_error and not gang_members.is_complete(gang, members):
        message = f"{message}; {last_error}"
    elif last_error and any(pod_state.is_gated(pod) for member in members for pod in member.active):
        reason, message = reasons.RECONCILE_ERROR, last_error
    return Condition(type=reasons.SCHEDULED, status="False", reason=reason, message=message)


def _waits_for(gang: PodGang, members: Sequence[Member], base_scheduled: bool) -> tuple[str, str]:
    if not gang_members.is_complete(gang, members):
        return reasons.WAITING_FOR_PODS, _initialized(gang, members).message
    said = find(gang.status.conditions, reasons.BACKEND_READY)
    if said is None:
        return reasons.BACKEND_NOT_READY, "backend not running: no BackendReady condition for this gang"
    if said.status != "True":
        return said.reason or reasons.BACKEND_NOT_READY, said.message
    if said.observed_generation != gang.metadata.generation:
        return reasons.BACKEND_NOT_READY, "the backend has not seen the gang's latest change"
    if not base_scheduled:
        return reasons.WAITING_FOR_BASE_GANG, "the base gang is placed first"
    short = [f"{member.name} {member.scheduled} of {member.minimum}" for member in members if not _placed(member)]
    return reasons.WAITING_FOR_SCHEDULER, "; ".join(
        [f"on nodes: {', '.join(short)}", *_once(_scheduler_words(members), said.message)]
    )


def _once(words: str, backend: str) -> list[str]:
    """What pods and backend say: most schedulers write one reason on both, and it is told once."""
    if words in backend:
        return [backend] if backend else []
    return [words] if backend in words else [words, backend]


def _placed(member: Member) -> bool:
    return member.scheduled >= member.minimum


def _scheduler_words(members: Sequence[Member]) -> str:
    """What the scheduler says about the first pod that it cannot place."""
    for member in members:
        for pod in member.active:
            said = find(pod.status.conditions, reasons.POD_SCHEDULED)
            if said is not None and said.status == "False" and said.reason == reasons.UNSCHEDULABLE:
                return said.message
    return ""


def _ready(members: Sequence[Member]) -> Condition:
    if gang_members.is_ready(members):
        message = "every pod group has its minimum ready"
        return Condition(type=reasons.READY, status="True", reason=reasons.PODS_READY, message=message)
    short = [f"{member.name} {member.ready} of {member.minimum}" for member in members if member.ready < member.minimum]
    return Condition(
        type=reasons.READY, status="False", reason=reasons.PODS_NOT_READY, message=f"ready: {', '.join(short)}"
    )


def _unhealthy(gang: PodGang, members: Sequence[Member]) -> Condition:
    """A gang is unhealthy that was scheduled once and has since lost pods it cannot do without."""
    known = find(gang.status.conditions, reasons.SCHEDULED)
    was = find(gang.status.conditions, reasons.UNHEALTHY)
    placed_before = (known is not None and known.status == "True") or (was is not None and was.status == "True")
    lost = [
        f"{member.name} {member.healthy} of {member.minimum}" for member in members if member.healthy < member.minimum
    ]
    if placed_before and lost:
        message = f"below the minimum: {', '.join(lost)}"
        return Condition(type=reasons.UNHEALTHY, status="True", reason=reasons.BELOW_MINIMUM, message=message)
    return Condition(type=reasons.UNHEALTHY, status="False", reason=reasons.HEALTHY)


def _disruption(members: Sequence[Member], terminating: bool) -> Condition:
    status, reason, message = "False", reasons.UNDISTURBED, ""
    disrupted = [pod.name for member in members for pod in member.pods if pod_state.is_disrupted(pod)]
    if terminating:
        status, reason = "True", reasons.TERMINATION_BY_OPERATOR
        message = "the gang stayed below its minimum for terminationDelay and is replaced"
    elif disrupted:
        status, reason, message = (
            "True",
            reasons.PODS_DISRUPTED,
            f"pods are being taken away: {', '.join(sorted(disrupted))}",
        )
    return Condition(type=reasons.DISRUPTION_TARGET, status=status, reason=reason, message=message)
