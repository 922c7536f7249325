"""The gangs of one backend that wait for release or are being placed, and those that were not bound in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from spinney.api import reasons
from spinney.api.conditions import find
from spinney.api.core import Node, PersistentVolume, PersistentVolumeClaim
from spinney.api.meta import Key
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.resource import ResourceClaim
from spinney.api.storage import StorageClass
from spinney.api.volumes import Storage
from spinney.backends.gang_pods import alive, bound, gated, pods_of
from spinney.backends.interface import Readiness
from spinney.backends.kube_scheduler.in_turn.concurrent_gangs import ConcurrentPods
from spinney.backends.kube_scheduler.in_turn.node_info import NodeInfo, node_infos
from spinney.backends.kube_scheduler.in_turn.placement import ClusterView
from spinney.backends.kube_scheduler.in_turn.reachable_nodes import CachedClaims, Claims
from spinney.backends.kube_scheduler.in_turn.release_plan import (
    BIND_TIMEOUT,
    RELEASED,
    WAITS_ITS_TURN,
    Candidate,
    Verdict,
    backoff_until,
    failed_attempts,
    is_complete,
    is_gated,
    is_overdue,
    is_placed,
    on_hold,
    released_since,
)
from spinney.backends.kube_scheduler.in_turn.release_round import ReleaseRound
from spinney.backends.served import discover
from spinney.kube.caches.cache import Cache, Change
from spinney.kube.runtime import Runtime

_LASTING = (reasons.DOES_NOT_FIT_YET, reasons.WAITS_FOR_OTHER_GANG)
# What the condition says once all pods were bound.
_PLACED = (reasons.SYNCED, reasons.SCHEDULER_REPORTS)


class ReleaseQueue:
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
        # Released as their condition says; `_granted` are those whose condition is not written yet.
        self._released: set[Key] = set()
        self._granted: dict[Key, Verdict] = {}
        # The pods that are being placed, on the resources that were free when this was computed.
        self._placing: ConcurrentPods | None = None
        # Valid until something changes, or until a gang's back-off is over.
        self._round: ReleaseRound | None = None
        gangs.on_change(self._gang_changed)
        pods.on_change(self._pod_changed)
        nodes.on_change(self._node_changed)

    def admit(self, gang: PodGang, readiness: Readiness, now: datetime) -> Verdict:
        """Whether a gang whose objects are ready may be released."""
        candidate = Candidate(gang, tuple(pods_of(self._pods, gang)))
        key = candidate.key
        self._waiting.discard(key)
        if not candidate.pods and not any(group.pod_references for group in gang.spec.podgroups):
            return Verdict(readiness)
        if candidate.pods and (released_since(gang) is not None or not is_gated(candidate)):
            return self._in_progress(candidate, readiness, now)
        if not is_complete(candidate):
            self._finish(key)
            return Verdict(Readiness(False, reasons.WAITS_FOR_PODS, "not all pods of its minimum are known yet"))
        if key not in self._granted:
            self._released.discard(key)
            self._waiting.add(key)
        verdict = self._verdict_on(candidate, now)
        if verdict.readiness.ready:
            return replace(verdict, again=BIND_TIMEOUT.total_seconds())
        until = backoff_until(candidate)
        again = (until - now).total_seconds() if until and until > now else None
        return Verdict(
            self._last_message(gang) if verdict.readiness is WAITS_ITS_TURN else verdict.readiness, again=again
        )

    def _in_progress(self, candidate: Candidate, readiness: Readiness, now: datetime) -> Verdict:
        """The verdict on a gang some of whose pods are released or bound already."""
        key = candidate.key
        ready = find(candidate.gang.status.conditions, reasons.BACKEND_READY)
        if is_placed(candidate) or (ready is not None and ready.status == "True" and ready.reason in _PLACED):
            self._finish(key)
            return Verdict(readiness)
        if ready is not None and ready.reason == reasons.RECREATED:
            return Verdict(Readiness(False, ready.reason, ready.message), recreate=True)
        if is_overdue(candidate, now):
            self._finish(key)
            attempt = len(failed_attempts(candidate.gang).split())
            message = f"not bound within {BIND_TIMEOUT} (attempt {attempt}); its pods are created again"
            return Verdict(Readiness(False, reasons.RECREATED, message), recreate=True)
        self._released.add(key)
        since = released_since(candidate.gang)
        left = BIND_TIMEOUT - (now - since) if since else BIND_TIMEOUT
        return Verdict(RELEASED, again=max(left.total_seconds(), 1.0))

    def _last_message(self, gang: PodGang) -> Readiness:
        """Keep the last message of a gang while another is being placed."""
        ready = find(gang.status.conditions, reasons.BACKEND_READY)
        if ready is not None and ready.status == "False" and ready.reason in _LASTING:
            return Readiness(False, ready.reason, ready.message)
        return WAITS_ITS_TURN

    def _verdict_on(self, candidate: Candidate, now: datetime) -> Verdict:
        key = candidate.key
        if key not in self._granted and self._joins(candidate, now):
            self._grant(key, Verdict(RELEASED))
        if key in self._granted:
            return self._granted[key]
        current = self._current_round(candidate, now)
        for released in current.go_on():
            if released not in self._waiting:
                # The gang was deleted meanwhile, and the room that was kept for it is free.
                self._round = None
                continue
            self._grant(released, current.verdicts[released])
            if released != key:
                self._enqueue(*released)
        if key not in current.verdicts:
            # Reconciled again when the round has come to it; other work of this process goes first.
            self._enqueue(*key)
            return Verdict(WAITS_ITS_TURN)
        return current.verdicts[key]

    def _current_round(self, candidate: Candidate, now: datetime) -> ReleaseRound:
        """The round that decides on a gang: the one under way if nothing has changed since, else a new one."""
        current = self._round
        if current is not None and (current.expires is None or now < current.expires) and current.add(candidate):
            return current
        view = self._view()
        self._placing = ConcurrentPods(view, self._pods_being_placed())
        self._round = ReleaseRound(self._candidates(), view, self._placing, now)
        return self._round

    def _joins(self, candidate: Candidate, now: datetime) -> bool:
        """Whether a gang may be released at once: no other waits, and it cannot block those that are being placed."""
        if self._waiting != {candidate.key} or on_hold(candidate, now) is not None:
            return False
        return self._placing is not None and self._placing.join(candidate.pods)

    def _grant(self, key: Key, verdict: Verdict) -> None:
        self._waiting.discard(key)
        self._released.add(key)
        self._granted[key] = verdict

    def _candidates(self) -> list[Candidate]:
        gangs = [self._gangs.get((namespace, name)) for namespace, name in self._waiting]
        return [Candidate(gang, tuple(pods_of(self._pods, gang))) for gang in gangs if gang is not None]

    def _view(self) -> ClusterView:
        computed: dict[int | None, Sequence[NodeInfo]] = {}
        running = [pod for pod in self._pods if bound(pod) and alive(pod)]

        def infos_for(above: int | None) -> Sequence[NodeInfo]:
            if above not in computed:
                computed[above] = node_infos(self._nodes, running, above)
            return computed[above]

        return ClusterView(infos_for, self._claims.reach)

    def _pods_being_placed(self) -> list[Pod]:
        """The pods without a node of gangs that are released and not bound yet."""
        unbound: list[Pod] = []
        for key in sorted(self._released):
            gang = self._gangs.get(key)
            pods = pods_of(self._pods, gang) if gang is not None else []
            if gang is None or is_placed(Candidate(gang, tuple(pods))):
                self._finish(key)
            else:
                unbound += [pod for pod in pods if not bound(pod)]
        return unbound

    def _finish(self, key: Key) -> None:
        self._granted.pop(key, None)
        if key in self._released:
            self._released.discard(key)
            self.wake()

    def wake(self) -> None:
        """Decide again: something changed that may allow the release of a waiting gang."""
        self._round = None
        for key in self._waiting:
            self._enqueue(*key)

    def _gang_changed(self, change: Change[PodGang]) -> None:
        key = (change.object.namespace, change.object.name)
        if change.new is None or change.new.metadata.deletion_timestamp is not None:
            self._waiting.discard(key)
            self._finish(key)
            return
        if released_since(change.new) is not None:
            self._released.add(key)

    def _pod_changed(self, change: Change[Pod]) -> None:
        """Resources become free when a bound pod ends or goes, and are taken when a pod is bound."""
        before = change.old is not None and bound(change.old) and alive(change.old)
        after = change.new is not None and bound(change.new) and alive(change.new)
        if before and not after:
            self.wake()
        elif after and not before:
            self._round = None
            if self._placing is not None and not self._placing.has(change.object):
                self._placing = None

    def _node_changed(self, change: Change[Node]) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and _offered(old) == _offered(new):
            return
        self._placing = None
        self.wake()


async def open_release_queue(
    runtime: Runtime, gangs: Cache[PodGang], pods: Cache[Pod], enqueue: Callable[[str, str], None]
) -> ReleaseQueue:
    """A queue that watches all that a placement depends on; device claims only where the cluster serves them."""
    caches, nodes = runtime.caches, runtime.caches.of(Node)
    storage = (caches.of(PersistentVolumeClaim), caches.of(PersistentVolume), caches.of(StorageClass))
    served = await discover(runtime.client, [ResourceClaim.resource])
    devices = caches.of(ResourceClaim) if served.has(ResourceClaim.resource) else None
    watched: list[Cache[Any]] = [*storage, *([devices] if devices else [])]
    for cache in (nodes, *watched):
        await cache.synced()
    releases = ReleaseQueue(gangs, pods, nodes, CachedClaims(Storage(*storage, nodes), devices), enqueue)
    for cache in watched:
        cache.on_change(lambda _: releases.wake())
    return releases


def _offered(node: Node) -> tuple[object, ...]:
    conditions = tuple((condition.type, condition.status) for condition in node.status.conditions)
    return node.status.allocatable, node.spec, conditions, node.metadata.labels


def released_pods(pods: Sequence[Pod]) -> list[Pod]:
    """All pods of a gang of which any is released: they are created again together, never single ones."""
    return list(pods) if any(not gated(pod) for pod in pods) else []
