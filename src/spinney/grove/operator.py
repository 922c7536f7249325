"""The operator's controllers, and which change wakes which of them."""

from __future__ import annotations

import asyncio
from typing import Any

from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.meta import Key
from spinney.backends.registry import Registry
from spinney.backends.served import Served, discover, follow
from spinney.grove.bare_gangs import BareGangs, gang_keys, pod_keys
from spinney.grove.executor import Executor
from spinney.grove.metrics import Watcher
from spinney.grove.model.topology import topology_name
from spinney.grove.replica.controller import ReplicaController
from spinney.grove.replica.status_controller import StatusController
from spinney.grove.set_controller import SetController
from spinney.grove.settings import Settings
from spinney.grove.status.summary import Summaries
from spinney.grove.world import World, replica_keys, set_keys
from spinney.kube.caches.cache import Cache, Change
from spinney.kube.controllers.controller import Controller
from spinney.kube.controllers.events import Recorder
from spinney.kube.runtime import Runtime

_STATUS_DELAY_PER_REPLICA = 0.01
_LONGEST_STATUS_DELAY = 2.0
# A reconcile looks at every clique of its replica, so a replica with many is looked at less often.
_REST_PER_CLIQUE = 0.0001
_LONGEST_REST = 2.0
_LARGE_REPLICA = 100
# Services that waited for other replicas' gates let the last of those pods start, too.
_SERVICE_DELAY = 0.25


class Operator:
    """The operator's controllers, wired: every change wakes exactly the replicas and sets it concerns."""

    def __init__(self, runtime: Runtime, settings: Settings, registry: Registry) -> None:
        self.world = world = World(runtime, settings, registry)
        self._runtime = runtime
        self._status_delay = settings.status_window
        clock, summaries = runtime.clock, Summaries()
        recorder = Recorder(runtime.client, clock, "grove-operator")
        executor = Executor(runtime.client, recorder)
        replicas = ReplicaController(
            world,
            runtime,
            executor,
            recorder,
            summaries,
            error_changed=self._error_changed,
            service_is_due=self._service_is_due,
        )
        statuses = StatusController(world, executor, recorder, clock, summaries, summary_changed=self._wake_set)
        sets = SetController(world, executor, recorder, clock, summaries)
        bare = BareGangs(world, executor, clock)
        self.replicas = Controller(
            "grove-replica", runtime, replicas.reconcile, settings.replicas_at_once, rest=self._rest
        )
        self.statuses = Controller(
            "grove-status", runtime, statuses.reconcile, settings.statuses_at_once, rest=self._rest
        )
        self.sets = Controller("grove-set", runtime, sets.reconcile, settings.sets_at_once)
        self.bare = Controller("grove-bare-gang", runtime, bare.reconcile, settings.statuses_at_once)
        Watcher(world, clock)
        self._watch()

    def _watch(self) -> None:
        world = self.world
        self.sets.watch(world.sets)
        owned: tuple[Cache[Any], ...] = (world.accounts, world.roles, world.role_bindings)
        for cache in owned:
            # Only a loss matters: the operator itself creates these.
            self.sets.watch(cache, set_keys, lambda change: change.new is None)
        for cache in world.by_replica:
            self.replicas.watch(cache, replica_keys)
        with_status: tuple[Cache[Any], ...] = (world.pods, world.cliques, world.groups, world.gangs)
        for cache in with_status:
            cache.on_change(self._status_source_changed)
        self.bare.watch(world.gangs, gang_keys).watch(world.foreign_pods, pod_keys)
        world.sets.on_change(self._set_changed)
        world.bindings.on_change(self._binding_changed)

    def _status_source_changed(self, change: Change[Any]) -> None:
        for key in replica_keys(change):
            self._wake_status(key)

    def _delay(self) -> float:
        """How long a status write waits: the longer, the more is going on, so that pods come first."""
        busy = len(self.replicas.queue) + self.statuses.queue.later
        return min(_LONGEST_STATUS_DELAY, self._status_delay + _STATUS_DELAY_PER_REPLICA * busy)

    def _rest(self, key: Key) -> float:
        """How long a replica is left alone once it was looked at."""
        cliques = len(self.world.of(self.world.cliques, key))
        return min(_LONGEST_REST, _REST_PER_CLIQUE * cliques) if cliques >= _LARGE_REPLICA else 0.0

    def _wake_set(self, key: Key) -> None:
        self.sets.enqueue(*key, self._delay())

    def _wake_status(self, key: Key) -> None:
        self.statuses.enqueue(*key, self._delay())

    def _wake_replica(self, pcs: PodCliqueSet, index: int) -> None:
        key = (pcs.namespace, f"{pcs.name}/{index}")
        self.replicas.enqueue(*key)
        self._wake_status(key)

    def _error_changed(self, pcs: PodCliqueSet, index: int) -> None:
        self._wake_set((pcs.namespace, pcs.name))
        self._wake_status((pcs.namespace, f"{pcs.name}/{index}"))

    def _service_is_due(self, key: Key) -> None:
        self.replicas.queue.add_after(key, _SERVICE_DELAY)

    def _set_changed(self, change: Change[PodCliqueSet]) -> None:
        """Wake the replicas of a set, unless only counts in its status changed: they would wake each other for ever."""
        old, new = change.old, change.new
        if old is not None and new is not None and _read_by_replicas(old) == _read_by_replicas(new):
            return
        for index in range(max(pcs.spec.replicas for pcs in (old, new) if pcs is not None)):
            self._wake_replica(change.object, index)

    def _binding_changed(self, change: Change[ClusterTopologyBinding]) -> None:
        for pcs in self.world.sets:
            if topology_name(pcs) != change.object.name:
                continue
            self.sets.enqueue(pcs.namespace, pcs.name)
            for index in range(pcs.spec.replicas):
                self._wake_replica(pcs, index)

    async def run(self) -> None:
        """Run until cancelled."""
        resources = self.world.registry.resources
        await self._set_served(await discover(self._runtime.client, resources))
        controllers = (self.sets, self.replicas, self.statuses, self.bare)
        async with asyncio.TaskGroup() as tasks:
            for controller in controllers:
                await controller.synced()
            for cache in (self.world.nodes, self.world.bindings):
                await cache.synced()
            for controller in controllers:
                tasks.create_task(controller.run(), name=controller.name)
            tasks.create_task(follow(self._runtime, resources, self._set_served), name="grove-served")
            self._runtime.ready()

    async def _set_served(self, served: Served) -> None:
        """Prepare pods from now on for the API versions that the cluster serves."""
        self.world.served = served


def _read_by_replicas(pcs: PodCliqueSet) -> tuple[object, ...]:
    metadata, progress = pcs.metadata, pcs.status.update_progress
    return (
        metadata.generation,
        metadata.deletion_timestamp,
        metadata.labels,
        metadata.annotations,
        metadata.finalizers,
        pcs.status.current_generation_hash,
        progress.currently_updating if progress is not None else (),
    )
