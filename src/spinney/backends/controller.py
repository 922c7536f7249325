"""The controller of a backend: reads the PodGangs of its label, keeps its scheduler's objects and `BackendReady`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from spinney.api import reasons
from spinney.api.conditions import find, is_true
from spinney.api.labels import ATTEMPT, PODGANG, RELEASE_ATTEMPTS, SCHEDULER_BACKEND
from spinney.api.meta import Key
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.untyped import Untyped
from spinney.backends.blockers import placeholder_report, pod_report
from spinney.backends.capabilities import Loss
from spinney.backends.gang_conditions import is_news, plan_status
from spinney.backends.gang_pods import BY_GANG, alive, all_pods_of, gang_names, pods_of, scheduling_state
from spinney.backends.gang_sync import GangSync
from spinney.backends.interface import Backend, Cluster, Queued, Readiness, Remembering, Retrying, TopologyAware
from spinney.backends.kube_scheduler.in_turn.nominations import plan_nominations
from spinney.backends.kube_scheduler.in_turn.release_plan import Verdict, failed_attempts
from spinney.backends.kube_scheduler.in_turn.release_queue import ReleaseQueue, open_release_queue, released_pods
from spinney.backends.metrics import SELECTED
from spinney.backends.placeholders import Placeholders
from spinney.backends.scheduler_liveness import SchedulerLiveness
from spinney.backends.served import Served, discover, follow
from spinney.backends.settings import Settings
from spinney.backends.sync import Leftovers, Targets
from spinney.backends.topology_controller import TopologyController
from spinney.kube.caches.cache import Change
from spinney.kube.client.flow import Priority
from spinney.kube.controllers.controller import After, Controller, owner_key
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import NotFound
from spinney.kube.parallel import all_of
from spinney.kube.runtime import Runtime

_CONCURRENCY = 16
# Pods that only show whether their scheduler runs need no immediate look: their changes are gathered.
_PODS_SECONDS = 2.0


class BackendController:
    """Runs one backend, independently of the operator and of other backends; catches up after a restart."""

    def __init__(self, runtime: Runtime, backend: Backend) -> None:
        self.backend = backend
        # Asked once: a look at a protocol costs more than most changes of a pod.
        self._retrying = backend if isinstance(backend, Retrying) else None
        self._remembering = backend if isinstance(backend, Remembering) else None
        self._queues = backend.queue_resource if isinstance(backend, Queued) else None
        self.served = Served()
        # Whether pods tell more than that their scheduler runs.
        self._reacts_to_pods = False
        self._runtime = runtime
        self._gangs = runtime.caches.of(PodGang, labels=f"{SCHEDULER_BACKEND}={backend.name}")
        self._pods = runtime.caches.of(Pod)
        self._pods.index(BY_GANG, gang_names)
        self._targets = Targets(runtime, backend.resources)
        self._recorder = Recorder(runtime.client, runtime.clock, f"spinney-backend-{backend.name}")
        self._sync = GangSync(backend, self._targets)
        self._settings = Settings(runtime.client, runtime.clock, backend)
        self._liveness = SchedulerLiveness(runtime, backend)
        self.controller = Controller(f"backend-{backend.name}", runtime, self.reconcile, _CONCURRENCY)
        self.controller.watch(self._gangs, when=_gang_matters)
        self.controller.wait_for(self._pods)
        self._leftovers = Leftovers(runtime.caches.of(PodGang), self._targets, self.controller.enqueue)
        self._placeholders = Placeholders(backend, self._gangs, self._pods)
        self._releases: ReleaseQueue | None = None
        self._topologies = (
            TopologyController(runtime, backend.name, backend, self._targets)
            if isinstance(backend, TopologyAware)
            else None
        )
        # Last: the caches of a standby are full, so this is called for every pod at once.
        self._pods.on_change(self._pod_changed)

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
        """Watch what is served; if that changed, reconcile every gang."""
        for cache in self._targets.serve(served):
            await cache.synced()
            if self._topologies is not None and cache.of.resource == self._topologies.resource:
                self._topologies.serve()
                self.controller.watch(cache, self._held_gangs)
            elif cache.of.resource == self._queues:
                self.controller.watch(cache, self._held_gangs)
            else:
                self.controller.watch(cache, owner_key(PodGang.resource.kind))
        capabilities = self.backend.capabilities(served)
        if self._releases is None and capabilities.in_turn:
            self._releases = await open_release_queue(self._runtime, self._gangs, self._pods, self.controller.enqueue)
        waits_for_pods = self._releases is not None or self._retrying is not None
        self._reacts_to_pods = waits_for_pods or capabilities.counts_gated
        # Last: no gang may be translated into what is not watched yet.
        changed, self.served = served != self.served, served
        if changed:
            for gang in self._gangs:
                self.controller.enqueue(gang.namespace, gang.name)

    async def reconcile(self, key: Key) -> After | None:
        """Bring one gang's objects and conditions up to date."""
        await self._leftovers.clear(key)
        gang = self._gangs.get(key)
        if gang is None or gang.metadata.deletion_timestamp is not None:
            self._liveness.forget(key)
            return None
        if self._retrying is not None:
            gang = await self._retried(gang, self._retrying)
        if self._remembering is not None:
            gang = await self._remembered(gang, self._remembering)
        await self._delete(self._placeholders.needless(gang, pods_of(self._pods, gang)))
        outcome = await self._sync.sync(gang, await self._cluster_for(gang))
        verdict = Verdict(self._with_reports(gang, outcome.readiness), again=outcome.again)
        if verdict.readiness.ready:
            verdict = await self._admitted(gang, verdict.readiness)
        if verdict.recreate:
            # Before the condition, whose change loses the time of the release.
            gang = await self._annotate(gang, RELEASE_ATTEMPTS, failed_attempts(gang))
        elif is_true(gang.status.conditions, reasons.SCHEDULED):
            gang = await self._annotate(gang, RELEASE_ATTEMPTS, None)
        if self._releases is not None:
            await self._nominate(gang, verdict)
        await self._write_status(gang, verdict.readiness, outcome.losses)
        if verdict.recreate:
            # The operator creates them again, gated.
            await self._delete(released_pods(pods_of(self._pods, gang)))
        return After(verdict.again) if verdict.again is not None else None

    async def _admitted(self, gang: PodGang, readiness: Readiness) -> Verdict:
        """The verdict on a gang whose objects are ready: it may wait for other gangs, or its scheduler may not run."""
        if self._releases is not None and self.backend.capabilities(self.served).in_turn:
            verdict = self._releases.admit(gang, readiness, self._runtime.clock.now())
            if not verdict.readiness.ready:
                return verdict
        else:
            verdict = Verdict(readiness)
        pods = [*pods_of(self._pods, gang), *self._placeholders.of(gang)]
        readiness, again = await self._liveness.checked(gang, pods, verdict.readiness)
        waits = [seconds for seconds in (verdict.again, again) if seconds is not None]
        return replace(verdict, readiness=readiness, again=min(waits, default=None))

    def _with_reports(self, gang: PodGang, readiness: Readiness) -> Readiness:
        """The readiness with what placeholders and failed pods say about a gang that waits."""
        if not readiness.ready or is_true(gang.status.conditions, reasons.SCHEDULED):
            return readiness
        failed = [pod for pod in all_pods_of(self._pods, gang) if not alive(pod)]
        report = pod_report(failed) or placeholder_report(self._placeholders.of(gang))
        return Readiness(True, reasons.SCHEDULER_REPORTS, report) if report else readiness

    async def _nominate(self, gang: PodGang, verdict: Verdict) -> None:
        """Write nominations before the condition, which lets the operator remove the gates."""
        client = self._runtime.client
        await all_of(
            client.patch(Pod, pod.key, patch, subresource="status")
            for pod, patch in plan_nominations(pods_of(self._pods, gang), verdict)
        )

    async def _retried(self, gang: PodGang, backend: Retrying) -> PodGang:
        """Begin a new attempt if the scheduler has given up, and delete pods of earlier ones."""
        pods = all_pods_of(self._pods, gang)
        if backend.spent(gang, pods):
            attempt = int(gang.metadata.annotations.get(ATTEMPT, "1")) + 1
            gang = await self._annotate(gang, ATTEMPT, str(attempt))
            message = f"backend {self.backend.name} gave up on the gang; attempt {attempt} begins with new pods"
            self._recorder.event(gang, "Warning", reasons.RECREATED, message)
        await self._delete(backend.outdated(gang, pods))
        return gang

    async def _annotate(self, gang: PodGang, key: str, value: str | None) -> PodGang:
        """Set or remove an annotation of the gang, if that changes it."""
        if gang.metadata.annotations.get(key) == value:
            return gang
        patch = {"metadata": {"annotations": {key: value}}}
        return await self._runtime.client.patch(PodGang, gang.key, patch)

    async def _delete(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            with suppress(NotFound):
                await self._runtime.client.delete(Pod, pod.key, uid=pod.uid)

    async def _remembered(self, gang: PodGang, backend: Remembering) -> PodGang:
        """The gang with what its existing objects say about how it was written."""
        objects = [live.plain() for _, live in self._targets.owned_by(gang.uid)]
        for key, value in backend.remembered(gang, objects).items():
            gang = await self._annotate(gang, key, value)
        return gang

    async def _cluster_for(self, gang: PodGang) -> Cluster:
        """The cluster as it is, for one gang."""
        topology = self._targets.all(self._topologies.resource) if self._topologies is not None else []
        return Cluster(
            self.served,
            topology,
            self._targets.all(self._queues) if self._queues in self._targets.watched else None,
            await self._settings.current(),
            pods_of(self._pods, gang),
        )

    async def _write_status(self, gang: PodGang, readiness: Readiness, losses: tuple[Loss, ...]) -> None:
        target = (self.backend.name, self.backend.capabilities(self.served).api)
        patch = plan_status(gang, readiness, losses, target, self._runtime.clock)
        if patch is None:
            return
        try:
            # Pods wait for this status.
            async with self._runtime.client.turn(Priority.NORMAL):
                await self._runtime.client.patch(PodGang, gang.key, patch, subresource="status")
        except NotFound:
            # Deleted meanwhile; the watch will show it.
            return
        if find(gang.status.conditions, reasons.BACKEND_READY) is None:
            SELECTED.labels(self.backend.name).inc()
        if not is_news(gang, readiness):
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
        gang = self._gangs.get((change.object.namespace, name))
        if gang is None and (holder := self._placeholders.gang_of(change.object)) is not None:
            self.controller.enqueue(holder.namespace, holder.name, _PODS_SECONDS)
        # Most pods belong to other backends, and this test costs less than the comparison.
        if gang is None or not _pod_matters(change):
            return
        self.controller.enqueue(gang.namespace, gang.name, 0.0 if self._reacts_to_pods else _PODS_SECONDS)


def _gang_matters(change: Change[PodGang]) -> bool:
    """Whether something changed besides the conditions that the operator writes."""
    return change.old is None or change.new is None or _relevant(change.old) != _relevant(change.new)


def _relevant(gang: PodGang) -> tuple[object, ...]:
    metadata, conditions = gang.metadata, gang.status.conditions
    fields = (metadata.generation, metadata.deletion_timestamp, metadata.labels, metadata.annotations)
    ours = (find(conditions, reasons.BACKEND_READY), find(conditions, reasons.DOWNGRADED))
    return (*fields, *ours, is_true(conditions, reasons.SCHEDULED))


def _pod_matters(change: Change[Pod]) -> bool:
    """Whether a pod's change can change its gang's readiness."""
    return change.old is None or change.new is None or scheduling_state(change.old) != scheduling_state(change.new)
