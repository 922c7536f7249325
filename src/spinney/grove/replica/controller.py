"""The controller of one set replica: what is missing is made, what is too much goes, and gangs are let go."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from spinney.api import labels, reasons
from spinney.api.core import Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Key
from spinney.backends.registry import Choice
from spinney.grove.model import gang_members, pod_state
from spinney.grove.model.layout import check_names
from spinney.grove.model.view import View
from spinney.grove.observe import observe
from spinney.grove.replica import gates, termination
from spinney.grove.replica.creation import Maker
from spinney.grove.replica.devices import Devices
from spinney.grove.replica.removal import Remover
from spinney.grove.replica.service_delay import ServiceDelay
from spinney.grove.status.summary import Summaries
from spinney.grove.world import World, split
from spinney.grove.writer import Writer
from spinney.kube.controllers.controller import After
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import Conflict, ConnectionLost
from spinney.kube.parallel import all_of
from spinney.kube.runtime import Runtime


class ReplicaController:
    """Reconciles set replicas; keys are namespace and `set/index`."""

    def __init__(
        self,
        world: World,
        runtime: Runtime,
        writer: Writer,
        recorder: Recorder,
        summaries: Summaries,
        *,
        error_changed: Callable[[PodCliqueSet, int], None],
        service_is_due: Callable[[Key], None],
    ) -> None:
        """`error_changed` is called when a replica begins or ceases to fail, `service_is_due` when it need not wait."""
        self._world = world
        self._writer = writer
        self._recorder = recorder
        self._clock = runtime.clock
        self._summaries = summaries
        self._maker = Maker(world, writer, recorder, runtime.client.chance)
        self._remover = Remover(world, writer, recorder)
        self._devices = Devices(world, writer, runtime.client)
        self._service_delay = ServiceDelay(runtime.clock, service_is_due)
        self._error_changed = error_changed

    async def reconcile(self, key: Key) -> After | None:
        """Bring one set replica closer to what it should be; the rest follows from what that changes."""
        namespace, name, index = split(key)
        pcs = self._world.sets.get((namespace, name))
        if pcs is None or index >= pcs.spec.replicas:
            self._maker.forget(key)
            self._service_delay.forget(key)
        if pcs is None or pcs.metadata.deletion_timestamp is not None:
            await self._remover.let_go(key)
            await self._devices.release(key)
            return None
        if labels.SET_FINALIZER not in pcs.metadata.finalizers:
            return None
        if index >= pcs.spec.replicas:
            await self._remover.remove(pcs, key)
            await self._devices.remove(key)
            return None
        return await self._watched(pcs, index, key)

    async def _watched(self, pcs: PodCliqueSet, index: int, key: Key) -> After | None:
        """Keep the replica; what goes wrong is told on the set, until it goes well again."""
        error: Exception | None = None
        try:
            wish = await self._keep(observe(self._world, pcs, index), key)
        except (Conflict, ConnectionLost):
            # Daily bread: the next attempt comes at once.
            raise
        except Exception as caught:
            error = caught
            raise
        else:
            self._maker.forget(key)
            return wish
        finally:
            if self._summaries.note_error((pcs.namespace, pcs.name), index, error, self._clock.now()):
                self._error_changed(pcs, index)
                # Told once, however often it is tried again.
                if error is not None:
                    self._recorder.event(pcs, "Warning", reasons.RECONCILE_ERROR, f"replica {index}: {error}")

    async def _keep(self, view: View, key: Key) -> After | None:
        check_names(view.layout)
        choice = self._world.choose(view.pcs)
        await self._remover.clear(view)
        await all_of([self._maker.make_groups(view), self._devices.make_domains(view, key)])
        await self._maker.make_cliques(view)
        await self._devices.make_claims(view, key)
        await self._maker.make_gangs(view, choice)
        if await self._maker.make_pods(view, choice):
            # They wake this replica again; where many replicas are made, the pods of all come before the rest of each.
            return None
        await self._remover.take_surplus(view, choice)
        served = bool(self._world.of(self._world.services, key))
        if not served:
            self._maker.check_service(view)
        free = await self._release(view, choice)
        placed = any(pod_state.is_scheduled(pod) for pods in view.pods.values() for pod in pods)
        wait = 0.0 if served else self._service_delay.seconds(key, ungated=free, scheduled=placed)
        if not wait:
            await all_of([self._maker.make_service(view, key), self._maker.make_autoscalers(view, key)])
        if view.updating:
            await self._remover.replace_outdated(view)
        wish = await self._terminate(view)
        return After(min(wait, wish.seconds) if wish else wait) if wait else wish

    async def _release(self, view: View, choice: Choice) -> bool:
        """Take the gates off the gangs that may start; says whether any pod of the replica is free to run."""
        surplus_held = choice.backend.capabilities(self._world.served).surplus_held
        base_scheduled = gang_members.is_scheduled(view.members(view.layout.base_gang))
        gate = choice.backend.gate
        free: list[Pod] = []
        for gang in view.layout.gangs:
            stored = view.gangs.get(gang.name)
            if stored is None or not view.has_cliques(gang):
                continue
            free += gates.releasable(
                stored,
                view.members(gang),
                gate,
                base_scheduled=not gang.base or base_scheduled,
                surplus_held=surplus_held,
            )
        for wave in gates.waves(free):
            await all_of([self._writer.release_pod(pod, gates.release_patch(pod, gate)) for pod in wave])
        return bool(free) or any(gates.is_free(pod, gate) for pods in view.pods.values() for pod in pods)

    async def _terminate(self, view: View) -> After | None:
        """Replace what stayed below its minimum for too long."""
        now = self._clock.now()
        verdict = termination.judge(view, now)
        if verdict.whole:
            await self._mark(view, now)
            message = f"replica {view.layout.index} stayed below its minimum for terminationDelay and is replaced"
            self._recorder.event(view.pcs, "Warning", reasons.SET_REPLICA_DELETE_SUCCESSFUL, message)
        await all_of(self._remover.drop(view, list(verdict.cliques)))
        return After((verdict.wake - now).total_seconds()) if verdict.wake is not None else None

    async def _mark(self, view: View, now: datetime) -> None:
        """Say on every scaling group that its breach has been answered, so that it is not answered twice."""
        for found in view.groups.values():
            conditions = termination.marked(found, now)
            if conditions is not None:
                await self._writer.patch_status(found, {"conditions": conditions}, guarded=True)
