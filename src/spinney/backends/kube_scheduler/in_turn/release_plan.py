"""What is known of a gang that waits for release, was released, or was not bound in time.

The state is in the gang's BackendReady condition. It is False while the gang waits, True with reason Released until it
is bound, then True with reason Synced. If a gang only just fits, a node is nominated for each of its pods. Without
that, kube-scheduler takes pods in any order, and may place small ones where only large ones fit. An annotation lists
the releases that failed, each once, even if a backend restarts meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from spinney.api import reasons
from spinney.api.conditions import find
from spinney.api.labels import POD_INDEX, PODCLIQUE, RELEASE_ATTEMPTS
from spinney.api.numbers import whole_number
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.times import rfc3339
from spinney.backends.gang_pods import bound, gated
from spinney.backends.interface import Readiness
from spinney.backends.kube_scheduler.in_turn.placement import Placement

BIND_TIMEOUT = timedelta(minutes=5)
FIRST_BACKOFF = timedelta(minutes=1)
MAX_ATTEMPTS = 3


@dataclass(frozen=True)
class Verdict:
    """The gang's readiness, the nodes to nominate, when to look again, and whether its pods are created again."""

    readiness: Readiness
    placement: Placement = field(default_factory=dict)
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
        """How many releases failed."""
        return len(_failed_releases(self.gang))

    @property
    def rank(self) -> tuple[int, datetime | None, tuple[str, str]]:
        """The order in which gangs are tried: by priority, then age."""
        priority = max((pod.spec.priority or 0 for pod in self.pods), default=0)
        return -priority, self.gang.metadata.creation_timestamp, self.key


def is_complete(candidate: Candidate) -> bool:
    """Whether every pod that the gang refers to exists, and every role has its minimum."""
    groups = candidate.gang.spec.podgroups
    names = {pod.name for pod in candidate.pods}
    if not all(ref.name in names for group in groups for ref in group.pod_references):
        return False
    return len(minimum_pods(candidate)) == sum(group.min_replicas for group in groups)


def minimum_pods(candidate: Candidate) -> list[Pod]:
    """The minimum of each role: bound pods first, then by index."""
    by_role: dict[str, list[Pod]] = defaultdict(list)
    for pod in candidate.pods:
        by_role[pod.metadata.labels.get(PODCLIQUE, "")].append(pod)
    chosen: list[Pod] = []
    for group in candidate.gang.spec.podgroups:
        chosen += sorted(by_role[group.name], key=_first)[: group.min_replicas]
    return chosen


def is_placed(candidate: Candidate) -> bool:
    """Whether the minimum of every role is bound."""
    needed = sum(group.min_replicas for group in candidate.gang.spec.podgroups)
    return sum(map(bound, minimum_pods(candidate))) >= needed


def is_gated(candidate: Candidate) -> bool:
    """Whether the gang has pods, and all of them are gated and without a node."""
    return bool(candidate.pods) and all(gated(pod) and not bound(pod) for pod in candidate.pods)


def released_since(gang: PodGang) -> datetime | None:
    """When a gang was released that is not bound yet; None for other gangs."""
    ready = find(gang.status.conditions, reasons.BACKEND_READY)
    if ready is None or ready.status != "True" or ready.reason != reasons.RELEASED:
        return None
    return ready.last_transition_time


def failed_attempts(gang: PodGang) -> str:
    """The gang's annotation of failed releases, the latest included."""
    earlier, since = _failed_releases(gang), released_since(gang)
    failed = rfc3339(since) if since else ""
    return " ".join(earlier if not failed or failed in earlier else (*earlier, failed))


def _failed_releases(gang: PodGang) -> tuple[str, ...]:
    return tuple(gang.metadata.annotations.get(RELEASE_ATTEMPTS, "").split())


def is_overdue(candidate: Candidate, now: datetime) -> bool:
    """Whether a gang was released and not bound within the timeout."""
    since = released_since(candidate.gang)
    return since is not None and not is_placed(candidate) and now - since >= BIND_TIMEOUT


def backoff_until(candidate: Candidate) -> datetime | None:
    """When a gang whose release failed may be tried again: it waits twice as long each time."""
    ready = find(candidate.gang.status.conditions, reasons.BACKEND_READY)
    if not candidate.attempts or ready is None or ready.status == "True" or ready.last_transition_time is None:
        return None
    backoff: timedelta = FIRST_BACKOFF * 2 ** (candidate.attempts - 1)
    return ready.last_transition_time + backoff


RELEASED = Readiness(True, reasons.RELEASED, "released; not bound yet")
# The same message for all that wait: otherwise every release would rewrite the status of every waiting gang.
WAITS_ITS_TURN = Readiness(
    False,
    reasons.WAITS_FOR_OTHER_GANG,
    "waits for its turn: another gang is being placed, and kube-scheduler 1.35 could leave both half-placed",
)


def on_hold(candidate: Candidate, now: datetime) -> Readiness | None:
    """Why a gang whose release failed must wait, whatever else is being placed."""
    if candidate.attempts >= MAX_ATTEMPTS:
        message = (
            f"was released {candidate.attempts} times and never bound within {BIND_TIMEOUT}; it now waits. Look at the "
            f"events of its pods, then remove its annotation {RELEASE_ATTEMPTS} to have it tried again"
        )
        return Readiness(False, reasons.NEVER_BOUND, message)
    until = backoff_until(candidate)
    if until is None or until <= now:
        return None
    failed = f"was released and not bound within {BIND_TIMEOUT} (attempt {candidate.attempts})"
    message = f"{failed}; tried again after {until:%H:%M:%S}"
    return Readiness(False, reasons.RECREATED, message)


def _first(pod: Pod) -> tuple[bool, bool, int]:
    return not bound(pod), gated(pod), whole_number(pod.metadata.labels.get(POD_INDEX, "")) or 0
