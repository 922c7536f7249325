"""Keeps the order of release among the gangs of one backend: who is being placed, who waits, who waited too long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from spinney.api import reasons
from spinney.api.core import Node
from spinney.api.meta import Key
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.backends.gang_pods import alive, bound, gated, pods_of
from spinney.backends.interface import Readiness
from spinney.backends.kube_scheduler.in_turn.concurrent_gangs import Crowd
from spinney.backends.kube_scheduler.in_turn.placement import Ground, Room, rooms
from spinney.backends.kube_scheduler.in_turn.reachable_nodes import Claims
from spinney.backends.kube_scheduler.in_turn.release_plan import (
    LET_GO,
    PATIENCE,
    TURN,
    Candidate,
    Verdict,
    given_up,
    held,
    overdue,
    placed,
    plan_release,
    released_since,
    resting_until,
    untouched,
    whole,
)
from spinney.kube.caches.cache import Cache, Change
from spinney.kube.conditions import find

_NEVER = datetime.max.replace(tzinfo=UTC)
_PATIENT = (reasons.DOES_NOT_FIT_YET, reasons.WAITS_FOR_OTHER_GANG)


class Gatekeeper:
    """One for each backend whose capabilities say `in_turn`."""

    def __init__(
        self,
        gangs: Cache[PodGang],
        pods: Cache[Pod],
        nodes: Cache[Node],
        claims: Claims,
        enqueue: Callable[[str, str], None],
    ) -> None:
        self._gangs = gangs
        self._pods = pods
        self._nodes = nodes
        self._claims = claims
        self._enqueue = enqueue
        self._waiting: set[Key] = set()
        # Told in a condition, or about to be: then with the words.
        self._released: set[Key] = set()
        self._granted: dict[Key, Verdict] = {}
        # What is being placed, on the room that was free when this was counted.
        self._crowd: Crowd | None = None
        # Good until something happens, or until a gang has rested long enough.
        self._verdicts: dict[Key, Verdict] | None = None
        self._expires = _NEVER
        gangs.on_change(self._gang_changed)
        pods.on_change(self._pod_changed)
        nodes.on_change(self._node_changed)

    def admit(self, gang: PodGang, readiness: Readiness, now: datetime) -> Verdict:
        """Whether a gang whose objects are ready may be let go."""
        candidate = Candidate(gang, tuple(pods_of(self._pods, gang)))
        key = candidate.key
        self._waiting.discard(key)
        if not candidate.pods and not any(group.pod_references for group in gang.spec.podgroups):
            return Verdict(readiness)
        if candidate.pods and (released_since(gang) is not None or not untouched(candidate)):
            return self._under_way(candidate, readiness, now)
        if not whole(candidate):
            self._settled(key)
            return Verdict(Readiness(False, reasons.WAITS_FOR_PODS, "not all pods of its minimum are known yet"))
        if key not in self._granted:
            self._released.discard(key)
            self._waiting.add(key)
        verdict = self._decided(candidate, now)
        if verdict.readiness.ready:
            return replace(verdict, again=PATIENCE.total_seconds())
        until = resting_until(candidate)
        again = (until - now).total_seconds() if until and until > now else None
        return Verdict(self._patience(gang) if verdict.readiness is TURN else verdict.readiness, again=again)

    def _under_way(self, candidate: Candidate, readiness: Readiness, now: datetime) -> Verdict:
        """A gang some of whose pods are free or bound already."""
        key = candidate.key
        told = find(candidate.gang.status.conditions, reasons.BACKEND_READY)
        if placed(candidate) or (told is not None and told.status == "True" and told.reason == reasons.SYNCED):
            self._settled(key)
            return Verdict(readiness)
        if told is not None and told.reason == reasons.RECREATED:
            return Verdict(Readiness(False, told.reason, told.message), recreate=True)
        if overdue(candidate, now):
            self._settled(key)
            attempt = len(given_up(candidate.gang).split())
            message = f"not bound within {PATIENCE} (attempt {attempt}); its pods are made anew"
            return Verdict(Readiness(False, reasons.RECREATED, message), recreate=True)
        self._released.add(key)
        since = released_since(candidate.gang)
        left = PATIENCE - (now - since) if since else PATIENCE
        return Verdict(LET_GO, again=max(left.total_seconds(), 1.0))

    def _patience(self, gang: PodGang) -> Readiness:
        """While another gang is being placed, what a gang was told last still holds."""
        told = find(gang.status.conditions, reasons.BACKEND_READY)
        if told is not None and told.status == "False" and told.reason in _PATIENT:
            return Readiness(False, told.reason, told.message)
        return TURN

    def _decided(self, candidate: Candidate, now: datetime) -> Verdict:
        key = candidate.key
        if key not in self._granted and self._joins(candidate, now):
            self._grant(key, Verdict(LET_GO))
        if key in self._granted:
            return self._granted[key]
        if self._verdicts is None or key not in self._verdicts or now >= self._expires:
            self._verdicts = self._decide(key, now)
        return self._verdicts[key]

    def _joins(self, candidate: Candidate, now: datetime) -> bool:
        """Whether a gang may go at once: nobody else waits, and there is room beside those that are being placed."""
        if self._waiting != {candidate.key} or held(candidate, now) is not None:
            return False
        return self._crowd is not None and self._crowd.join(candidate.pods)

    def _decide(self, asked: Key, now: datetime) -> dict[Key, Verdict]:
        """Look at all that wait together. Who is let go counts as being placed from here on, and is told so."""
        placing, candidates, ground = self._placing(), self._candidates(), self._ground()
        self._crowd = Crowd(ground, placing)
        verdicts = plan_release(candidates, ground, self._crowd, now)
        rests = [until for until in map(resting_until, candidates) if until is not None and until > now]
        self._expires = min(rests, default=_NEVER)
        for winner, verdict in verdicts.items():
            if verdict.readiness.ready:
                self._grant(winner, verdict)
                if winner != asked:
                    self._enqueue(*winner)
        return verdicts

    def _grant(self, key: Key, verdict: Verdict) -> None:
        self._waiting.discard(key)
        self._released.add(key)
        self._granted[key] = verdict

    def _candidates(self) -> list[Candidate]:
        gangs = [self._gangs.get((namespace, name)) for namespace, name in self._waiting]
        return [Candidate(gang, tuple(pods_of(self._pods, gang))) for gang in gangs if gang is not None]

    def _ground(self) -> Ground:
        known: dict[int | None, Sequence[Room]] = {}
        held = [pod for pod in self._pods if bound(pod) and alive(pod)]

        def rooms_for(above: int | None) -> Sequence[Room]:
            if above not in known:
                known[above] = rooms(self._nodes, held, above)
            return known[above]

        return Ground(rooms_for, self._claims.reach)

    def _placing(self) -> list[Pod]:
        """The pods without a node of gangs that were let go and are not bound yet."""
        found: list[Pod] = []
        for key in sorted(self._released):
            gang = self._gangs.get(key)
            pods = pods_of(self._pods, gang) if gang is not None else []
            if gang is None or placed(Candidate(gang, tuple(pods))):
                self._settled(key)
            else:
                found += [pod for pod in pods if not bound(pod)]
        return found

    def _settled(self, key: Key) -> None:
        self._granted.pop(key, None)
        if key in self._released:
            self._released.discard(key)
            self.stir()

    def stir(self) -> None:
        """Something that may let a waiting gang go has happened."""
        self._verdicts = None
        for key in self._waiting:
            self._enqueue(*key)

    def _gang_changed(self, change: Change[PodGang]) -> None:
        key = (change.object.namespace, change.object.name)
        if change.new is None or change.new.metadata.deletion_timestamp is not None:
            self._waiting.discard(key)
            self._settled(key)
            return
        if released_since(change.new) is not None:
            self._released.add(key)

    def _pod_changed(self, change: Change[Pod]) -> None:
        """Room appears where a pod that had a node is gone or done; it vanishes where one gets a node."""
        before = change.old is not None and bound(change.old) and alive(change.old)
        after = change.new is not None and bound(change.new) and alive(change.new)
        if before and not after:
            self.stir()
        elif after and not before:
            self._verdicts = None
            if self._crowd is not None and not self._crowd.has(change.object):
                self._crowd = None

    def _node_changed(self, change: Change[Node]) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and _offers(old) == _offers(new):
            return
        self._crowd = None
        self.stir()


def _offers(node: Node) -> tuple[object, ...]:
    conditions = tuple((condition.type, condition.status) for condition in node.status.conditions)
    return node.status.allocatable, node.spec, conditions, node.metadata.labels


def loose(pods: Sequence[Pod]) -> list[Pod]:
    """The pods of a gang that were let go: all of them are made anew, never single ones."""
    return list(pods) if any(not gated(pod) for pod in pods) else []
