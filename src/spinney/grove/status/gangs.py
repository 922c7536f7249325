"""A PodGang's status: its phase, its conditions, what it waits for, and its placement score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from spinney.api import pod_state, reasons
from spinney.api.conditions import as_json, find, is_true, merged
from spinney.api.core import Node, Pod
from spinney.api.meta import Condition, Json
from spinney.api.podgang import PodGang
from spinney.api.refusals import most_telling
from spinney.grove.model import domains, gang_members
from spinney.grove.model.gang_members import Member
from spinney.grove.model.topology import Levels
from spinney.grove.status import problems
from spinney.grove.status.patches import difference
from spinney.grove.status.score import placement_score


def gang_status(
    stored: PodGang, members: Sequence[Member], conditions: Iterable[Condition], score: float | None, now: datetime
) -> Json:
    """The status as it should be stored; others' conditions stay as they are."""
    status: Json = {"phase": _phase(members), "conditions": as_json(merged(stored.status.conditions, conditions, now))}
    if score is not None:
        status["placementScore"] = score
    return status


def status_patch(stored: PodGang, wanted: Json) -> Json:
    """What a gang's status must change; the schema requires a phase in every status."""
    patch = difference(stored.status, wanted)
    return {"phase": wanted["phase"], **patch} if patch else {}


def gang_score(stored: PodGang, members: Sequence[Member], levels: Levels, nodes: Mapping[str, Node]) -> float | None:
    """The placement score; none before the gang is scheduled, and as it was until another pod is placed."""
    if not gang_members.is_scheduled(members):
        return None
    pods = [pod for member in members for pod in member.active if pod_state.is_scheduled(pod)]
    scheduled = find(stored.status.conditions, reasons.SCHEDULED)
    if scheduled is not None and scheduled.status == "True" and stored.status.placement_score is not None:
        since = scheduled.last_transition_time
        if since is not None and all(_placed_before(pod, since) for pod in pods):
            # It does not change with nodes that come and go later.
            return stored.status.placement_score
    # Without a binding, a gang is measured by the levels that it requires.
    own = Levels(keys=tuple((key, key) for key in domains.required_keys(stored)))
    return placement_score(pods, nodes, levels if levels.keys else own)


def _placed_before(pod: Pod, moment: datetime) -> bool:
    condition = find(pod.status.conditions, reasons.POD_SCHEDULED)
    placed = condition.last_transition_time if condition is not None else None
    return placed is None or placed < moment


def _phase(members: Sequence[Member]) -> str:
    """Pending until scheduled, Starting until ready, then Running; Succeeded or Failed when all pods are finished."""
    pods = [pod for member in members for pod in member.active]
    if pods and all(pod_state.is_finished(pod) for pod in pods):
        return reasons.FAILED if any(pod.status.phase == "Failed" for pod in pods) else reasons.SUCCEEDED
    if not gang_members.is_scheduled(members):
        return reasons.PENDING
    return reasons.RUNNING if gang_members.is_ready(members) else reasons.STARTING


def conditions(
    gang: PodGang,
    members: Sequence[Member],
    base_scheduled: bool,
    terminating: bool,
    last_error: str = "",
    *,
    nodes: Mapping[str, Node],
) -> list[Condition]:
    """The operator's own conditions of a gang; `last_error` is why its last reconcile failed."""
    placements = domains.required_placements(gang, members, nodes)
    return [
        _initialized(gang, members),
        _scheduled(gang, members, base_scheduled, last_error, placements),
        _ready(members),
        _unhealthy(gang, members),
        _disruption(members, terminating),
        *problems.topology_violated(gang, placements),
        *problems.surplus_waiting(gang, members),
    ]


def _initialized(gang: PodGang, members: Sequence[Member]) -> Condition:
    if gang_members.is_complete(gang, members) or is_true(gang.status.conditions, reasons.INITIALIZED):
        message = "every pod of the gang was created and is referenced"
        return Condition(type=reasons.INITIALIZED, status="True", reason=reasons.PODS_CREATED, message=message)
    short = [
        f"{member.name} has {len(member.active)} of {member.wanted}"
        for member in members
        if len(member.active) < member.wanted
    ]
    message = f"pods are missing: {', '.join(short)}" if short else "pods are not referenced yet"
    return Condition(type=reasons.INITIALIZED, status="False", reason=reasons.PODS_CREATION_PENDING, message=message)


def _scheduled(
    gang: PodGang,
    members: Sequence[Member],
    base_scheduled: bool,
    last_error: str,
    placements: Sequence[domains.Placement],
) -> Condition:
    if gang_members.is_scheduled(members):
        where = [f"{placement.subject} in {placement.key} {placement}" for placement in placements]
        message = "; ".join(["every pod group has its minimum on nodes", *where])
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
    backend = find(gang.status.conditions, reasons.BACKEND_READY)
    if backend is None:
        return reasons.BACKEND_NOT_READY, "backend not running: no BackendReady condition for this gang"
    if backend.status != "True":
        return backend.reason or reasons.BACKEND_NOT_READY, backend.message
    if backend.observed_generation != gang.metadata.generation:
        return reasons.BACKEND_NOT_READY, "the backend has not seen the gang's latest change"
    if not base_scheduled:
        return reasons.WAITING_FOR_BASE_GANG, "the base gang is placed first"
    short = [
        f"{member.name} {member.scheduled} of {member.minimum}"
        for member in members
        if member.scheduled < member.minimum
    ]
    return reasons.WAITING_FOR_SCHEDULER, "; ".join(
        [f"on nodes: {', '.join(short)}", *_without_repetition(_scheduler_message(members), backend.message)]
    )


def _without_repetition(pod: str, backend: str) -> list[str]:
    """The messages of pod and backend, once: most schedulers write the same reason on both."""
    if pod in backend:
        return [backend] if backend else []
    return [pod] if backend in pod else [pod, backend]


def _scheduler_message(members: Sequence[Member]) -> str:
    """The most informative message of the scheduler on pods that it cannot place."""
    conditions = [find(pod.status.conditions, reasons.POD_SCHEDULED) for member in members for pod in member.active]
    return most_telling(
        condition.message
        for condition in conditions
        if condition and condition.status == "False" and condition.reason == reasons.UNSCHEDULABLE
    )


def _ready(members: Sequence[Member]) -> Condition:
    if gang_members.is_ready(members):
        message = "every pod group has its minimum ready"
        return Condition(type=reasons.READY, status="True", reason=reasons.PODS_READY, message=message)
    short = [f"{member.name} {member.ready} of {member.minimum}" for member in members if member.ready < member.minimum]
    return Condition(
        type=reasons.READY, status="False", reason=reasons.PODS_NOT_READY, message=f"ready: {', '.join(short)}"
    )


def _unhealthy(gang: PodGang, members: Sequence[Member]) -> Condition:
    """A gang is unhealthy if it was scheduled once and has since lost pods of its minimum."""
    existing = gang.status.conditions
    scheduled_before = is_true(existing, reasons.SCHEDULED) or is_true(existing, reasons.UNHEALTHY)
    lost = [
        f"{member.name} {member.healthy} of {member.minimum}" for member in members if member.healthy < member.minimum
    ]
    if scheduled_before and lost:
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
