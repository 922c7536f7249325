"""The controller half of a backend: PodGangs of its label in, its scheduler's objects and `BackendReady` out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from spinney.api import reasons
from spinney.api.core import Node, PersistentVolume, PersistentVolumeClaim
from spinney.api.labels import ALLOW_DOWNGRADE, ATTEMPT, PODGANG, RELEASE_ATTEMPTS, SCHEDULER_BACKEND
from spinney.api.meta import Json, Key
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.resource import ResourceClaim
from spinney.api.storage import StorageClass
from spinney.api.untyped import Untyped
from spinney.api.volumes import Storage
from spinney.backends.admission import allows_downgrade
from spinney.backends.capabilities import Loss
from spinney.backends.deleted_gangs import Departed
from spinney.backends.gang_conditions import plan_status, turned
from spinney.backends.gang_pods import BY_GANG, all_pods_of, gang_names, pods_of, sign
from spinney.backends.interface import Backend, Cluster, Readiness, Retrying, TopologyAware
from spinney.backends.kube_scheduler.in_turn.nominations import plan_nominations
from spinney.backends.kube_scheduler.in_turn.reachable_nodes import CachedClaims
from spinney.backends.kube_scheduler.in_turn.release_plan import Verdict, failed_attempts
from spinney.backends.kube_scheduler.in_turn.release_queue import ReleaseQueue, released_pods
from spinney.backends.metrics import CONVERSIONS, ERRORS, LATENCY, SELECTED
from spinney.backends.scheduler_liveness import Silence
from spinney.backends.served import Served, discover, follow
from spinney.backends.sync import Targets
from spinney.backends.topology_controller import TopologyController
from spinney.kube.caches.cache import Cache, Change
from spinney.kube.client.flow import Priority
from spinney.kube.conditions import find, is_true
from spinney.kube.controllers.controller import After, Controller, owner_key
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import ApiError, Conflict, NotFound
from spinney.kube.parallel import all_of
from spinney.kube.runtime import Runtime
from spinney.kube.writer import Blocked

_RETRY_SECONDS = 15.0
# Where pods tell no more than whether their scheduler is silent, what they do is gathered for a while.
_PODS_SECONDS = 2.0


@dataclass(frozen=True)
class Outcome:
    """What became of a gang's objects."""

    readiness: Readiness
    losses: tuple[Loss, ...] = ()
    again: float | None = None


class BackendController:
    """Runs one backend. It needs neither the operator nor any other backend, and catches up after a pause."""

    def __init__(self, runtime: Runtime, backend: Backend, concurrency: int = 16) -> None:
        self.backend = backend
        self.served = Served()
        self._runtime = runtime
        self._gangs = runtime.caches.of(PodGang, labels=f"{SCHEDULER_BACKEND}={backend.name}")
        self._pods = runtime.caches.of(Pod)
        self._pods.index(BY_GANG, gang_names)
        self._targets = Targets(runtime, backend.resources)
        self._recorder = Recorder(runtime.client, runtime.clock, f"spinney-backend-{backend.name}")
        self._silence = Silence(runtime, backend)
        self._latency = LATENCY.labels(backend.name)
        self._converted = CONVERSIONS.labels(backend.name, "ok")
        self.controller = Controller(f"backend-{backend.name}", runtime, self.reconcile, concurrency)
        self.controller.watch(self._gangs, when=_gang_matters)
        self.controller.wait_for(self._pods)
        self._pods.on_change(self._pod_changed)
        self._departed = Departed(runtime.caches.of(PodGang), self._targets, self.controller.enqueue)
        self._releases: ReleaseQueue | None = None
        self._topologies = (
            TopologyController(runtime, backend.name, backend, self._targets)
            if isinstance(backend, TopologyAware)
            else None
        )

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(follow(self._runtime, self.backend.resources, self._serve))
            tasks.create_task(self.controller.run())
            if self._topologies is not None:
                tasks.create_task(self._topologies.controller.run())

    async def discover(self) -> None:
        """Learn what the cluster serves."""
        await self._serve(await discover(self._runtime.client, self.backend.resources))

    async def _serve(self, served: Served) -> None:
        """Watch what is served; where that changed, look at every gang again."""
        for cache in self._targets.serve(served):
            await cache.synced()
            if self._topologies is not None and cache.of.resource == self._topologies.resource:
                self._topologies.serve()
                self.controller.watch(cache, self._held_gangs)
            else:
                self.controller.watch(cache, owner_key(PodGang.resource.kind))
        if self._releases is None and self.backend.capabilities(served).in_turn:
            self._releases = await self._keep_gates()
        # Only now: no gang may be translated into what is not watched yet.
        changed, self.served = served != self.served, served
        if changed:
            for gang in self._gangs:
                self.controller.enqueue(gang.namespace, gang.name)

    async def _keep_gates(self) -> ReleaseQueue:
        """A gatekeeper that sees all the fit check looks at; devices only where the cluster has claims for them."""
        caches, nodes = self._runtime.caches, self._runtime.caches.of(Node)
        claimed = (caches.of(PersistentVolumeClaim), caches.of(PersistentVolume), caches.of(StorageClass))
        devices = caches.of(ResourceClaim) if await self._has_device_claims() else None
        watched: list[Cache[Any]] = [*claimed, *([devices] if devices else [])]
        for cache in (nodes, *watched):
            await cache.synced()
        keeper = ReleaseQueue(
            self._gangs, self._pods, nodes, CachedClaims(Storage(*claimed, nodes), devices), self.controller.enqueue
        )
        for cache in watched:
            cache.on_change(lambda _: keeper.wake())
        return keeper

    async def _has_device_claims(self) -> bool:
        return (await discover(self._runtime.client, [ResourceClaim.resource])).has(ResourceClaim.resource)

    async def reconcile(self, key: Key) -> After | None:
        """Bring one gang's objects and conditions up to date."""
        await self._departed.clear(key)
        gang = self._gangs.get(key)
        if gang is None or gang.metadata.deletion_timestamp is not None:
            self._silence.forget(key)
            return None
        if isinstance(self.backend, Retrying):
            gang = await self._retried(gang, self.backend)
        started = perf_counter()
        outcome = await self._sync(gang)
        self._latency.observe(perf_counter() - started)
        verdict = Verdict(outcome.readiness, again=outcome.again)
        if verdict.readiness.ready:
            verdict = await self._admitted(gang, verdict.readiness)
        if verdict.recreate:
            # Ahead of the condition, which forgets when the gang was let go.
            gang = await self._annotate(gang, RELEASE_ATTEMPTS, failed_attempts(gang))
        elif is_true(gang.status.conditions, reasons.SCHEDULED):
            gang = await self._annotate(gang, RELEASE_ATTEMPTS, None)
        if self._releases is not None:
            await self._nominate(gang, verdict)
        await self._tell(gang, verdict.readiness, outcome.losses)
        if verdict.recreate:
            # The operator makes them again, gated.
            await self._delete(released_pods(pods_of(self._pods, gang)))
        return After(verdict.again) if verdict.again is not None else None

    async def _admitted(self, gang: PodGang, readiness: Readiness) -> Verdict:
        """A gang whose objects are ready may still have to wait for others, or for its scheduler to show itself."""
        if self._releases is not None and self.backend.capabilities(self.served).in_turn:
            verdict = self._releases.admit(gang, readiness, self._runtime.clock.now())
            if not verdict.readiness.ready:
                return verdict
        else:
            verdict = Verdict(readiness)
        heard, later = await self._silence.heard(gang, pods_of(self._pods, gang), verdict.readiness)
        waits = [seconds for seconds in (verdict.again, later) if seconds is not None]
        return replace(verdict, readiness=heard, again=min(waits, default=None))

    async def _nominate(self, gang: PodGang, verdict: Verdict) -> None:
        """Write what is nominated ahead of the condition: nobody takes a gate off before that."""
        client = self._runtime.client
        await all_of(
            client.patch(Pod, pod.key, patch, subresource="status")
            for pod, patch in plan_nominations(pods_of(self._pods, gang), verdict)
        )

    async def _retried(self, gang: PodGang, backend: Retrying) -> PodGang:
        """Begin a new attempt where the scheduler has given up, and clear away pods of earlier ones."""
        pods = all_pods_of(self._pods, gang)
        if backend.spent(gang, pods):
            attempt = int(gang.metadata.annotations.get(ATTEMPT, "1")) + 1
            gang = await self._annotate(gang, ATTEMPT, str(attempt))
            message = f"backend {self.backend.name} gave up on the gang; attempt {attempt} begins with new pods"
            self._recorder.event(gang, "Warning", reasons.RECREATED, message)
        await self._delete(backend.outdated(gang, pods))
        return gang

    async def _annotate(self, gang: PodGang, key: str, value: str | None) -> PodGang:
        """The gang with an annotation, or without it; written only where that is news."""
        if gang.metadata.annotations.get(key) == value:
            return gang
        patch = {"metadata": {"annotations": {key: value}}}
        return await self._runtime.client.patch(PodGang, gang.key, patch)

    async def _delete(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            with suppress(NotFound):
                await self._runtime.client.delete(Pod, pod.key, uid=pod.uid)

    async def _sync(self, gang: PodGang) -> Outcome:
        backend, allowed = self.backend, allows_downgrade(gang.metadata.annotations)
        capabilities = backend.capabilities(self.served)
        if not capabilities.api and not allowed:
            return self._failed(reasons.NOT_SERVED, self._not_served())
        translation = backend.translate(gang, Cluster(self.served, self._topology()))
        if translation.losses and not allowed:
            return self._failed(reasons.NOT_EXPRESSIBLE, _lost(backend.name, capabilities.api, translation.losses))
        try:
            found, dropped, reports = await self._targets.sync(gang, translation.objects)
        except Blocked as blocked:
            return self._failed(reasons.NAME_TAKEN, str(blocked), again=_RETRY_SECONDS)
        except Conflict:
            raise
        except ApiError as error:
            message = f"the API server refused: {error}"
            return self._failed(reasons.SYNC_FAILED, message, again=_RETRY_SECONDS)
        if dropped and not allowed:
            message = _lost(backend.name, capabilities.api, dropped) + " (a feature gate of the API server is off)"
            return self._failed(reasons.NOT_EXPRESSIBLE, message)
        self._converted.inc()
        readiness = backend.ready(gang, found)
        if is_true(gang.status.conditions, reasons.SCHEDULED):
            # What a scheduler said while it was looking for room no longer holds.
            readiness = backend.ready(gang, [{**item, "status": {}} for item in found])
        if reports:
            readiness = Readiness(readiness.ready, readiness.reason, "; ".join(reports))
        return Outcome(readiness, (*translation.losses, *dropped))

    def _failed(self, reason: str, message: str, again: float | None = None) -> Outcome:
        ERRORS.labels(self.backend.name, reason).inc()
        CONVERSIONS.labels(self.backend.name, "failed").inc()
        return Outcome(Readiness(False, reason, message), (), again)

    def _not_served(self) -> str:
        named = ", ".join(dict.fromkeys(resource.api_version for resource in self.backend.resources))
        return (
            f"the cluster serves no API of backend {self.backend.name} ({named}): install or enable it, or set "
            f'{ALLOW_DOWNGRADE}: "true" on the set to have its pods placed one by one'
        )

    def _topology(self) -> list[Json]:
        return self._targets.all(self._topologies.resource) if self._topologies is not None else []

    async def _tell(self, gang: PodGang, readiness: Readiness, losses: tuple[Loss, ...]) -> None:
        target = (self.backend.name, self.backend.capabilities(self.served).api)
        patch = plan_status(gang, readiness, losses, target, self._runtime.clock)
        if patch is None:
            return
        try:
            # A status that pods wait for.
            async with self._runtime.client.turn(Priority.NORMAL):
                await self._runtime.client.patch(PodGang, gang.key, patch, subresource="status")
        except NotFound:
            # Gone while we looked; the watch will say so.
            return
        if find(gang.status.conditions, reasons.BACKEND_READY) is None:
            SELECTED.labels(self.backend.name).inc()
        if not turned(gang, readiness):
            return
        message = f"backend {self.backend.name}: {readiness.message}"
        if readiness.ready:
            self._recorder.event(gang, "Normal", reasons.BACKEND_SYNCED, message)
        else:
            self._recorder.event(gang, "Warning", readiness.reason, message)

    def _held_gangs(self, _: Change[Untyped]) -> Iterable[Key]:
        """The gangs that a change of the scheduler's topology may help."""
        held = [gang for gang in self._gangs if not is_true(gang.status.conditions, reasons.BACKEND_READY)]
        return [(gang.namespace, gang.name) for gang in held]

    def _pod_changed(self, change: Change[Pod]) -> None:
        name = change.object.metadata.labels.get(PODGANG, "")
        known = self._gangs.get((change.object.namespace, name))
        # Most pods are another backend's: whose it is costs less to find out than what changed.
        if known is None or not _matters(change):
            return
        at_once = self._releases is not None or isinstance(self.backend, Retrying)
        self.controller.enqueue(known.namespace, known.name, 0.0 if at_once else _PODS_SECONDS)


def _gang_matters(change: Change[PodGang]) -> bool:
    """Whether a gang changed otherwise than by what the operator says about it."""
    return change.old is None or change.new is None or _read(change.old) != _read(change.new)


def _read(gang: PodGang) -> tuple[object, ...]:
    metadata, said = gang.metadata, gang.status.conditions
    noted = (metadata.generation, metadata.deletion_timestamp, metadata.labels, metadata.annotations)
    ours = (find(said, reasons.BACKEND_READY), find(said, reasons.DOWNGRADED))
    return (*noted, *ours, is_true(said, reasons.SCHEDULED))


def _matters(change: Change[Pod]) -> bool:
    """Whether a pod's change can change what a backend says about its gang."""
    return change.old is None or change.new is None or sign(change.old) != sign(change.new)


def _lost(backend: str, api: str, losses: Iterable[Loss]) -> str:
    sentences = "; ".join(loss.sentence(backend, api) for loss in losses)
    return f'{sentences}. Set {ALLOW_DOWNGRADE}: "true" on the set to go without'
