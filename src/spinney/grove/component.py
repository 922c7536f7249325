"""The Grove operator as a component: its controllers wired to what wakes them, its rights, its webhooks."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import cache
from typing import Any

from spinney.api import labels
from spinney.api.core import Secret
from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.groveconfig import ConfigurationError, OperatorConfiguration, problems
from spinney.backends.registry import Registry
from spinney.backends.served import Served, discover, follow
from spinney.grove.admission.webhooks import webhooks
from spinney.grove.metrics import Watcher
from spinney.grove.model import topology
from spinney.grove.preflight import preflight, with_own_name
from spinney.grove.replica.controller import Replicas
from spinney.grove.replica.relevance import calls_for_action, calls_for_words
from spinney.grove.rights import NAMESPACE_RULES, RULES
from spinney.grove.set_controller import Sets
from spinney.grove.settings import GroveConfiguration, Settings, lease, process
from spinney.grove.status.bare_gangs import BareGangs, gang_keys, pod_keys
from spinney.grove.status.controller import ReplicaStatus
from spinney.grove.status.summary import Summaries
from spinney.grove.world import World, replica_keys, set_keys
from spinney.grove.writer import Writer
from spinney.kube.caches.cache import Cache, Change
from spinney.kube.controllers.controller import Controller
from spinney.kube.controllers.events import Recorder
from spinney.kube.runtime import Component, Runtime

NAME = "grove"
_WINDOW_PER_REPLICA = 0.01
_LONGEST_WINDOW = 2.0
# Services that were put off for others' gates let the last of those pods start, too.
_AFTER_LAST_RELEASE = 0.25


class Operator:
    """The operator's controllers, wired: every change wakes exactly the replicas and sets it concerns."""

    def __init__(self, runtime: Runtime, settings: Settings, registry: Registry) -> None:
        self.world = World(runtime, settings, registry)
        self._runtime = runtime
        self._window = settings.status_window
        writer = Writer(runtime.client)
        recorder = Recorder(runtime.client, runtime.clock, "grove-operator")
        summaries = Summaries()
        replicas = Replicas(self.world, runtime, writer, recorder, summaries)
        status = ReplicaStatus(self.world, writer, recorder, runtime.clock, summaries)
        sets = Sets(self.world, writer, recorder, runtime.clock, summaries)
        self.replicas = Controller("grove-replica", runtime, replicas.reconcile, settings.replicas_at_once)
        self.statuses = Controller("grove-status", runtime, status.reconcile, settings.statuses_at_once)
        self.sets = Controller("grove-set", runtime, sets.reconcile, settings.sets_at_once)
        bare = BareGangs(self.world, writer, runtime.clock)
        self.bare = Controller("grove-bare-gang", runtime, bare.reconcile, settings.statuses_at_once)
        status.tell_set = self._tell_set
        replicas.news = self._news
        replicas.courtesy.wake = lambda key: self.replicas.queue.add_after(key, _AFTER_LAST_RELEASE)
        Watcher(self.world, runtime.clock)
        self._wire()

    def _wire(self) -> None:
        world = self.world
        self.sets.watch(world.sets)
        for owned in (world.accounts, world.roles, world.role_bindings, world.secrets):
            self._watch_owned(owned)
        self.sets.watch(world.secrets, set_keys, _is_filled)
        for placed in world.by_replica:
            self.replicas.watch(placed, replica_keys, self._calls_replica)
        for shown in (world.pods, world.cliques, world.groups, world.gangs):
            self._show(shown)
        self.bare.watch(world.gangs, gang_keys, calls_for_words).watch(world.foreign_pods, pod_keys, calls_for_words)
        world.sets.on_change(self._set_changed)
        world.bindings.on_change(self._binding_changed)

    def _calls_replica(self, change: Change[Any]) -> bool:
        """What is left of a replica or a set that is gone wakes nobody else: the operator may have ended in between."""
        return calls_for_action(change) or (change.old is None and self.world.is_left_over(change.object))

    def _watch_owned(self, cache: Cache[Any]) -> None:
        # Only a loss matters: what is created is ours.
        self.sets.watch(cache, set_keys, lambda change: change.new is None)

    def _show(self, cache: Cache[Any]) -> None:
        def changed(change: Change[Any]) -> None:
            if not calls_for_words(change):
                return
            for namespace, name in replica_keys(change):
                self.statuses.enqueue(namespace, name, self._patience())

        cache.on_change(changed)

    def _patience(self) -> float:
        """How long a status may wait: the more is going on, the longer, so that pods come first and changes gather."""
        busy = len(self.replicas.queue) + self.statuses.queue.later
        return min(_LONGEST_WINDOW, self._window + _WINDOW_PER_REPLICA * busy)

    def _tell_set(self, namespace: str, name: str) -> None:
        self.sets.enqueue(namespace, name, self._patience())

    def _news(self, pcs: PodCliqueSet, index: int) -> None:
        self._tell_set(pcs.namespace, pcs.name)
        self._tell(pcs, index)

    def _set_changed(self, change: Change[PodCliqueSet]) -> None:
        """Wake the replicas of a set whose spec, or whose update, has moved; its own status does not matter to them."""
        old, new = change.old, change.new
        most = max(old.spec.replicas if old is not None else 0, new.spec.replicas if new is not None else 0)
        if _calls_replicas(old, new):
            for index in range(most):
                self._wake(change.object, index)
        elif old and new and old.status.current_generation_hash != new.status.current_generation_hash:
            for index in range(most):
                self._tell(change.object, index)

    def _wake(self, pcs: PodCliqueSet, index: int) -> None:
        self.replicas.enqueue(pcs.namespace, f"{pcs.name}/{index}")
        self._tell(pcs, index)

    def _tell(self, pcs: PodCliqueSet, index: int) -> None:
        self.statuses.enqueue(pcs.namespace, f"{pcs.name}/{index}", self._patience())

    def _binding_changed(self, change: Change[ClusterTopologyBinding]) -> None:
        for pcs in self.world.sets:
            if topology.topology_name(pcs) != change.object.name:
                continue
            self.sets.enqueue(pcs.namespace, pcs.name)
            for index in range(pcs.spec.replicas):
                self._wake(pcs, index)

    async def run(self) -> None:
        """Run until cancelled."""
        resources = self.world.registry.resources
        await self._serve(await discover(self._runtime.client, resources))
        controllers = (self.sets, self.replicas, self.statuses, self.bare)
        async with asyncio.TaskGroup() as tasks:
            for controller in controllers:
                await controller.synced()
            for looked_at in (self.world.nodes, self.world.bindings):
                await looked_at.synced()
            for controller in controllers:
                tasks.create_task(controller.run(), name=controller.name)
            tasks.create_task(follow(self._runtime, resources, self._serve), name="grove-served")
            self._runtime.ready()

    async def _serve(self, served: Served) -> None:
        """Pods are linked to their gangs in the words of what the cluster serves now."""
        self.world.served = served


def _is_filled(change: Change[Secret]) -> bool:
    """Whether a token has just come: one under an older name may go then."""
    return change.old is not None and change.new is not None and not change.old.data and bool(change.new.data)


def _calls_replicas(old: PodCliqueSet | None, new: PodCliqueSet | None) -> bool:
    if old is None or new is None:
        # Nothing is made before the finalizer is there, and that is a change of its own.
        return new is None or labels.SET_FINALIZER in new.metadata.finalizers
    return _acted_on(old) != _acted_on(new)


def _acted_on(pcs: PodCliqueSet) -> tuple[object, ...]:
    metadata, progress = pcs.metadata, pcs.status.update_progress
    noted = (metadata.finalizers, metadata.labels, metadata.annotations)
    turns = progress.currently_updating if progress is not None else ()
    return (metadata.generation, metadata.deletion_timestamp, *noted, turns)


def component(settings: Settings | None = None) -> Component:
    """The operator with settings of its own; a configuration file that `run` is handed takes their place."""
    state = {"settings": settings or Settings()}
    registry = cache(Registry.load)

    def configured(config: OperatorConfiguration) -> Component:
        if found := problems(config):
            raise ConfigurationError("; ".join(found))
        return component(replace(state["settings"], config=config))

    async def run(runtime: Runtime, config: Any = None) -> None:
        if isinstance(config, OperatorConfiguration):
            state["settings"] = replace(state["settings"], config=config)
        await preflight(runtime.client, state["settings"])
        state["settings"] = await with_own_name(runtime.client, state["settings"])
        await Operator(runtime, state["settings"], registry()).run()

    return Component(
        name=NAME,
        summary="Turns PodCliqueSets into gangs of gated pods.",
        run=run,
        rules=RULES,
        namespace_rules=NAMESPACE_RULES,
        webhooks=webhooks(lambda: state["settings"], registry),
        settings=GroveConfiguration,
        lease=lease,
        process=process,
        configured=configured,
    )


COMPONENT = component()
