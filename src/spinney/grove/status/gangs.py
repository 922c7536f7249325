"""A PodGang's status: whether its pods exist, have nodes, serve, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spinney.api import reasons
from spinney.api.conditions import find
from spinney.api.core import Pod
from spinney.api.meta import Condition
from spinney.api.podgang import PodGang
from spinney.grove.model import pod_state


@dataclass(frozen=True)
class Member:
    """One pod group of a gang: what it needs, what it should have, and the pods it has."""

    name: str
    minimum: int
    wanted: int
    pods: Sequence[Pod]

    @property
    def staying(self) -> list[Pod]:
        """Its pods that are not on their way out."""
        return [pod for pod in self.pods if not pod_state.is_leaving(pod)]

    @property
    def scheduled(self) -> int:
        """How many have a node."""
        return sum(map(pod_state.is_scheduled, self.staying))

    @property
    def ready(self) -> int:
        """How many serve."""
        return sum(map(pod_state.is_ready, self.staying))


def is_complete(gang: PodGang, members: Sequence[Member]) -> bool:
    """Whether every pod of the gang exists and is referenced."""
    referenced = {reference.name for group in gang.spec.podgroups for reference in group.pod_references}
    return all(
        len(member.staying) >= member.wanted and all(pod.name in referenced for pod in member.staying)
        for member in members
    )


def is_scheduled(members: Sequence[Member]) -> bool:
    """Whether every pod group has its minimum on nodes."""
    return all(member.scheduled >= member.minimum for member in members)


def is_ready(members: Sequence[Member]) -> bool:
    """Whether every pod group has its minimum serving."""
    return all(member.ready >= member.minimum for member in members)


def backend_ready(gang: PodGang) -> bool:
    """Whether the backend has said, for this generation, that the gang may start."""
    said = find(gang.status.conditions, reasons.BACKEND_READY)
    return said is not None and said.status == "True" and said.observed_generation == gang.metadata.generation


def phase(members: Sequence[Member]) -> str:
    """The one word for it: Pending until scheduled, Starting until ready, Running; or how it ended."""
    pods = [pod for member in members for pod in member.staying]
    if pods and all(pod_state.is_finished(pod) for pod in pods):
        return reasons.FAILED if any(pod.status.phase == "Failed" for pod in pods) else reasons.SUCCEEDED
    if not is_scheduled(members):
        return reasons.PENDING
    return reasons.RUNNING if is_ready(members) else reasons.STARTING


def conditions(
    gang: PodGang, members: Sequence[Member], base_scheduled: bool, terminating: bool, trouble: str = ""
) -> list[Condition]:
    """The operator's own conditions of a gang; `trouble` is what keeps it from making all that the gang needs."""
    return [
        _initialized(gang, members),
        _scheduled(gang, members, base_scheduled, trouble),
        _ready(members),
        _unhealthy(gang, members),
        _disruption(members, terminating),
    ]


def _initialized(gang: PodGang, members: Sequence[Member]) -> Condition:
    known = find(gang.status.conditions, reasons.INITIALIZED)
    if is_complete(gang, members) or (known is not None and known.status == "True"):
        message = "every pod of the gang was created and is referenced"
        return Condition(type=reasons.INITIALIZED, status="True", reason=reasons.PODS_CREATED, message=message)
    short = [f"{member.name} has {len(member.staying)} of {member.wanted}" for member in members if _short(member)]
    message = f"pods are missing: {', '.join(short)}" if short else "pods are not referenced yet"
    return Condition(type=reasons.INITIALIZED, status="False", reason=reasons.PODS_CREATION_PENDING, message=message)


def _short(member: Member) -> bool:
    return len(member.staying) < member.wanted


def _scheduled(gang: PodGang, members: Sequence[Member], base_scheduled: bool, trouble: str) -> Condition:
    if is_scheduled(members):
        message = "every pod group has its minimum on nodes"
        return Condition(type=reasons.SCHEDULED, status="True", reason=reasons.PODS_SCHEDULED, message=message)
    reason, message = _waits_for(gang, members, base_scheduled)
    if trouble and not is_complete(gang, members):
        message = f"{message}; {trouble}"
    elif trouble and any(pod_state.is_gated(pod) for member in members for pod in member.staying):
        reason, message = reasons.RECONCILE_ERROR, trouble
    return Condition(type=reasons.SCHEDULED, status="False", reason=reason, message=message)


def _waits_for(gang: PodGang, members: Sequence[Member], base_scheduled: bool) -> tuple[str, str]:
    if not is_complete(gang, members):
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
        for pod in member.staying:
            said = find(pod.status.conditions, reasons.POD_SCHEDULED)
            if said is not None and said.status == "False" and said.reason == reasons.UNSCHEDULABLE:
                return said.message
    return ""


def _ready(members: Sequence[Member]) -> Condition:
    if is_ready(members):
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
        f"{member.name} {_well(member)} of {member.minimum}" for member in members if _well(member) < member.minimum
    ]
    if placed_before and lost:
        message = f"below the minimum: {', '.join(lost)}"
        return Condition(type=reasons.UNHEALTHY, status="True", reason=reasons.BELOW_MINIMUM, message=message)
    return Condition(type=reasons.UNHEALTHY, status="False", reason=reasons.HEALTHY)


def _well(member: Member) -> int:
    return sum(
        pod_state.is_scheduled(pod) and not pod_state.has_failed(pod) and not pod_state.is_stuck(pod)
        for pod in member.staying
    )


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


def references(gang: PodGang) -> Mapping[str, tuple[str, ...]]:
    """The pods a stored gang names, by pod group."""
    return {group.name: tuple(found.name for found in group.pod_references) for group in gang.spec.podgroups}
