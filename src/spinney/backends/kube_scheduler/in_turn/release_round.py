"""One round of decisions on the gangs that wait, a bounded part of it at a time.

Thousands of gangs may wait, and to try one costs a look at every node. A round lasts until something changes. It tries
gangs in their order, a number of steps at a time, so that nothing else in the process waits for it. A gang that comes
later is tried alone. Gangs whose pods are all alike in what they need share one answer.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from datetime import datetime

from spinney.api import reasons
from spinney.api.labels import PODCLIQUE
from spinney.api.meta import Key
from spinney.api.pod import Pod
from spinney.backends.gang_pods import bound
from spinney.backends.interface import Readiness
from spinney.backends.kube_scheduler.in_turn.concurrent_gangs import ConcurrentPods
from spinney.backends.kube_scheduler.in_turn.placement import ClusterView, Unplaced, place
from spinney.backends.kube_scheduler.in_turn.release_plan import (
    RELEASED,
    WAITS_ITS_TURN,
    Candidate,
    Verdict,
    backoff_until,
    minimum_pods,
    on_hold,
)

# Looks of a pod at a node; some tens of milliseconds.
STEPS = 2000


class ReleaseRound:
    """The verdicts on waiting gangs, as long as nothing else changes.

    Gangs that cannot block each other are released together. A gang that fits but could block others is released alone:
    it waits until nothing else is being placed, and no other gang overtakes it.
    """

    def __init__(self, waiting: Iterable[Candidate], view: ClusterView, placing: ConcurrentPods, now: datetime) -> None:
        self.verdicts: dict[Key, Verdict] = {}
        self._view = view
        self._placing = placing
        self._now = now
        self._untried = sorted(waiting, key=_rank)
        self._keys = {candidate.key for candidate in self._untried}
        backoffs = [backoff_until(candidate) for candidate in self._untried]
        # When the first gang may be tried again whose release failed.
        self.expires = min((until for until in backoffs if until is not None and until > now), default=None)
        # The gang that is released alone, or waits to be.
        self._alone: Candidate | None = None
        # By what the pods of a gang need: the place, among those that are missing, of the pod without a node.
        self._unplaced: dict[bytes, int] = {}

    def add(self, candidate: Candidate) -> bool:
        """Take in one more gang; False if it may overtake the gang released alone: then the round starts over."""
        if candidate.key in self._keys:
            return True
        until = backoff_until(candidate)
        may_overtake = self._alone is not None and _rank(candidate) < _rank(self._alone)
        if may_overtake or (until is not None and until > self._now):
            return False
        self._keys.add(candidate.key)
        insort(self._untried, candidate, key=_rank)
        return True

    def go_on(self, steps: int = STEPS) -> list[Key]:
        """Try gangs in their order, for about so many steps; return those that are released."""
        released: list[Key] = []
        while self._untried and steps > 0:
            candidate = self._untried.pop(0)
            verdict, needed = self._try(candidate)
            steps -= needed
            self.verdicts[candidate.key] = verdict
            if verdict.readiness.ready:
                released.append(candidate.key)
        return released

    def _try(self, candidate: Candidate) -> tuple[Verdict, int]:
        """The verdict on one gang, and the steps that it took."""
        hold = on_hold(candidate, self._now)
        if hold is not None:
            return Verdict(hold), 1
        if self._alone is not None:
            return Verdict(WAITS_ITS_TURN), 1
        missing = [pod for pod in minimum_pods(candidate) if not bound(pod)]
        kind = self._placing.kind_of(candidate.pods, missing)
        if kind is not None and kind in self._unplaced:
            return _does_not_fit(candidate, Unplaced(missing[self._unplaced[kind]])), 1
        steps = len(self._view.node_infos(None)) * len(candidate.pods)
        if self._placing.join(candidate.pods):
            return Verdict(RELEASED), steps
        verdict = self._placed(candidate, missing, kind)
        if not verdict.readiness.ready:
            return verdict, steps
        self._alone = candidate
        if not self._placing.is_empty:
            return Verdict(WAITS_ITS_TURN), steps
        self._placing.close()
        return verdict, steps

    def _placed(self, candidate: Candidate, missing: list[Pod], kind: bytes | None) -> Verdict:
        placement = place(missing, self._view)
        if not isinstance(placement, Unplaced):
            return Verdict(RELEASED, placement)
        priority = -candidate.rank[0]
        if priority > 0 and not isinstance(place(missing, self._view, priority), Unplaced):
            # kube-scheduler chooses the victims.
            message = "released; to be bound in place of pods of lower priority"
            return Verdict(Readiness(True, reasons.RELEASED, message))
        if kind is not None:
            self._unplaced[kind] = missing.index(placement.pod)
        return _does_not_fit(candidate, placement)


def _rank(candidate: Candidate) -> tuple[int, datetime | None, tuple[str, str]]:
    return candidate.rank


def _does_not_fit(candidate: Candidate, unplaced: Unplaced) -> Verdict:
    needed = sum(group.min_replicas for group in candidate.gang.spec.podgroups)
    role = unplaced.pod.metadata.labels.get(PODCLIQUE, "")
    message = f"its minimum of {needed} pods does not fit on what is free now: " + (
        f"{role}: {unplaced.reason}" if unplaced.reason else f"no node was found for a pod of {role} beside the others"
    )
    return Verdict(Readiness(False, reasons.DOES_NOT_FIT_YET, message))
