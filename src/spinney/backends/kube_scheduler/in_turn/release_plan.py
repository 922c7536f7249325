"""Lets gangs go in turn, where half-placed gangs would block each other for good (kube-scheduler 1.35).

The state lives in the gang's own BackendReady condition: False while it waits, True with reason Released until it is
bound for the first time, then True with reason Synced. A gang that only just fits goes with a node nominated for each
pod, since kube-scheduler would take its pods one by one in any order, and may scatter small ones over the room that
large ones need. An annotation lists the times it was let go in vain: each is
there once, however often a backend is stopped while it gives up on the gang.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from spinney.api import reasons
from spinney.api.labels import POD_INDEX, PODCLIQUE, RELEASE_ATTEMPTS
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.times import rfc3339
from spinney.backends.gang_pods import bound, gated
from spinney.backends.interface import Readiness
from spinney.backends.kube_scheduler.in_turn.concurrent_gangs import Crowd
from spinney.backends.kube_scheduler.in_turn.placement import Ground, Misfit, Places, fit
from spinney.kube.conditions import find

PATIENCE = timedelta(minutes=5)
BACK_OFF = timedelta(minutes=1)
MOST_ATTEMPTS = 3


@dataclass(frozen=True)
class Verdict:
    """What a gang is told and the nodes its pods are nominated for, when to look again, and whether it is made anew."""

    readiness: Readiness
    places: Places = field(default_factory=dict)
    again: float | None = None
    recreate: bool = False


@dataclass(frozen=True)
class Candidate:
    """A gang and its living pods."""

    gang: PodGang
    pods: tuple[Pod, ...]

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.gang.namespace, self.gang.name

    @property
    def attempts(self) -> int:
        """How often it was let go in vain."""
        return len(_in_vain(self.gang))

    @property
    def rank(self) -> tuple[int, datetime | None, tuple[str, str]]:
        """The order in which gangs are tried: by priority, then age."""
        priority = max((pod.spec.priority or 0 for pod in self.pods), default=0)
        return -priority, self.gang.metadata.creation_timestamp, self.key


def whole(candidate: Candidate) -> bool:
    """Whether every pod that the gang refers to is known, and every role has its minimum of them."""
    groups = candidate.gang.spec.podgroups
    names = {pod.name for pod in candidate.pods}
    if not all(ref.name in names for group in groups for ref in group.pod_references):
        return False
    return len(minimum(candidate)) == sum(group.min_replicas for group in groups)


def minimum(candidate: Candidate) -> list[Pod]:
    """The pods that the gang cannot do without: of each role the first ones, those that have a node before others."""
    by_role: dict[str, list[Pod]] = defaultdict(list)
    for pod in candidate.pods:
        by_role[pod.metadata.labels.get(PODCLIQUE, "")].append(pod)
    chosen: list[Pod] = []
    for group in candidate.gang.spec.podgroups:
        chosen += sorted(by_role[group.name], key=_first)[: group.min_replicas]
    return chosen


def placed(candidate: Candidate) -> bool:
    """Whether every role has its minimum on nodes."""
    needed = sum(group.min_replicas for group in candidate.gang.spec.podgroups)
    return sum(map(bound, minimum(candidate))) >= needed


def untouched(candidate: Candidate) -> bool:
    """Whether the gang stands at its gate as a whole: it has pods, none of them has a node and all are gated."""
    return bool(candidate.pods) and all(gated(pod) and not bound(pod) for pod in candidate.pods)


def released_since(gang: PodGang) -> datetime | None:
    """Since when a gang is let go without having been bound; None where it is not."""
    found = find(gang.status.conditions, reasons.BACKEND_READY)
    if found is None or found.status != "True" or found.reason != reasons.RELEASED:
        return None
    return found.last_transition_time


def given_up(gang: PodGang) -> str:
    """The times a gang was let go in vain as its annotation lists them, with the one that is over now."""
    known, since = _in_vain(gang), released_since(gang)
    over = rfc3339(since) if since else ""
    return " ".join(known if not over or over in known else (*known, over))


def _in_vain(gang: PodGang) -> tuple[str, ...]:
    return tuple(gang.metadata.annotations.get(RELEASE_ATTEMPTS, "").split())


def overdue(candidate: Candidate, now: datetime) -> bool:
    """Whether a gang was let go and is not bound after all that time."""
    since = released_since(candidate.gang)
    return since is not None and not placed(candidate) and now - since >= PATIENCE


def resting_until(candidate: Candidate) -> datetime | None:
    """When a gang that was let go in vain may be tried again: each time it waits twice as long."""
    found = find(candidate.gang.status.conditions, reasons.BACKEND_READY)
    if not candidate.attempts or found is None or found.status == "True" or found.last_transition_time is None:
        return None
    resting: timedelta = BACK_OFF * 2 ** (candidate.attempts - 1)
    return found.last_transition_time + resting


def plan_release(
    waiting: Iterable[Candidate], ground: Ground, crowd: Crowd, now: datetime
) -> dict[tuple[str, str], Verdict]:
    """What every waiting gang is told, each with its reason, while a crowd is being placed already.

    Gangs go together as long as they cannot get into each other's way. One that could, and fits, goes alone: it waits
    until nothing else is being placed, and nobody overtakes it.
    """
    verdicts: dict[tuple[str, str], Verdict] = {}
    closed = False
    for candidate in sorted(waiting, key=lambda each: each.rank):
        kept = held(candidate, now)
        if kept is not None:
            verdict = Verdict(kept)
        elif closed:
            verdict = Verdict(TURN)
        elif crowd.join(candidate.pods):
            verdict = Verdict(LET_GO)
        else:
            verdict = _tried(candidate, ground)
            closed = verdict.readiness.ready
            if closed and not crowd.is_empty:
                verdict = Verdict(TURN)
            elif closed:
                crowd.close()
        verdicts[candidate.key] = verdict
    return verdicts


LET_GO = Readiness(True, reasons.RELEASED, "let go; waits to be bound")
# The same words for all that wait, whoever is being placed: else every release would rewrite every waiting gang.
TURN = Readiness(
    False,
    reasons.WAITS_FOR_OTHER_GANG,
    "waits for its turn: another gang is being placed, and kube-scheduler 1.35 could leave both half-placed",
)


def held(candidate: Candidate, now: datetime) -> Readiness | None:
    """What keeps a gang that was let go in vain, whoever else is being placed."""
    if candidate.attempts >= MOST_ATTEMPTS:
        message = (
            f"was let go {candidate.attempts} times and never bound within {PATIENCE}; it now waits. Look at the "
            f"events of its pods, then remove its annotation {RELEASE_ATTEMPTS} to have it tried again"
        )
        return Readiness(False, reasons.NEVER_BOUND, message)
    until = resting_until(candidate)
    if until is None or until <= now:
        return None
    message = (
        f"was let go and not bound within {PATIENCE} (attempt {candidate.attempts}); tried again after {until:%H:%M:%S}"
    )
    return Readiness(False, reasons.RECREATED, message)


def _tried(candidate: Candidate, ground: Ground) -> Verdict:
    needed = minimum(candidate)
    missing = [pod for pod in needed if not bound(pod)]
    found = fit(missing, ground)
    if not isinstance(found, Misfit):
        return Verdict(LET_GO, found)
    priority = -candidate.rank[0]
    if priority > 0 and not isinstance(fit(missing, ground, priority), Misfit):
        # Whom it takes the place of is kube-scheduler's choice.
        message = "let go; waits to be bound in the place of pods of lower priority"
        return Verdict(Readiness(True, reasons.RELEASED, message))
    role = found.pod.metadata.labels.get(PODCLIQUE, "")
    message = f"the {len(needed)} pods it cannot do without do not fit on what is free now: " + (
        f"of {role}, {found.lacks}" if found.lacks else f"no node was found for a pod of {role} beside the others"
    )
    return Verdict(Readiness(False, reasons.DOES_NOT_FIT_YET, message))


def _first(pod: Pod) -> tuple[bool, bool, int]:
    index = pod.metadata.labels.get(POD_INDEX, "0")
    return not bound(pod), gated(pod), int(index) if index.isdecimal() else 0
