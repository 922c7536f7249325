"""Keep a scheduler's topology objects in sync with ClusterTopologyBindings: write them, or report drift."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from spinney.api import reasons
from spinney.api.conditions import as_json, condition, find, merged
from spinney.api.grove import ClusterTopologyBinding, SchedulerTopologyStatus
from spinney.api.meta import Condition, Json, Key, Resource
from spinney.api.untyped import Untyped
from spinney.backends.interface import TopologyAware
from spinney.backends.sync import Targets
from spinney.kube.caches.cache import Change
from spinney.kube.clock import Clock
from spinney.kube.controllers.controller import After, Controller
from spinney.kube.controllers.events import Recorder
from spinney.kube.runtime import Runtime
from spinney.kube.writer import Blocked

_RETRY_SECONDS = 15.0


class TopologyController:
    """Writes or checks the topology of one backend, and its entry in the status of every binding."""

    def __init__(self, runtime: Runtime, name: str, backend: TopologyAware, targets: Targets) -> None:
        self._runtime = runtime
        self._backend = backend
        self._targets = targets
        self._recorder = Recorder(runtime.client, runtime.clock, f"spinney-backend-{name}")
        self._bindings = runtime.caches.of(ClusterTopologyBinding)
        self.controller = Controller(f"topology-{name}", runtime, self.reconcile, concurrency=2)
        self.controller.watch(self._bindings)

    @property
    def resource(self) -> Resource:
        """Where the scheduler's topology objects are served."""
        return self._backend.topology_resource

    def serve(self) -> None:
        """Reconcile every binding whenever one of the scheduler's objects changes."""
        self.controller.watch(self._targets.watched[self._backend.topology_resource], self._all)

    def _all(self, _: Change[Untyped]) -> Iterable[Key]:
        return [("", binding.name) for binding in self._bindings]

    async def reconcile(self, key: Key) -> After | None:
        """Bring the scheduler's topology and its entry in one binding's status up to date."""
        binding = self._bindings.get(key[1])
        if binding is None or binding.metadata.deletion_timestamp is not None:
            return None
        if self._backend.topology_resource not in self._targets.watched:
            return None
        entry = await self._entry(binding)
        patch = plan_topology_status(binding, self._backend.topology_scheduler, entry, self._runtime.clock)
        if patch is not None:
            await self._runtime.client.patch(ClusterTopologyBinding, binding.name, patch, subresource="status")
            self._announce(binding, entry)
        return After(_RETRY_SECONDS) if entry is not None and not entry.in_sync else None

    async def _entry(self, binding: ClusterTopologyBinding) -> SchedulerTopologyStatus | None:
        backend = self._backend
        named = [
            reference.topology_reference
            for reference in binding.spec.scheduler_topology_bindings
            if reference.scheduler_name == backend.topology_scheduler
        ]
        reference = named[0] if named else binding.name
        wanted = None if named else backend.topology(binding)
        message = ""
        if wanted is not None:
            try:
                await self._targets.sync(binding, [wanted])
            except Blocked as blocked:
                message = str(blocked)
            return _status(backend.topology_scheduler, reference, message)
        topologies = self._targets.all(backend.topology_resource)
        if not named and not topologies:
            # This scheduler's topology is not used here.
            return None
        return _status(backend.topology_scheduler, reference, backend.topology_drift(binding, reference, topologies))

    def _announce(self, binding: ClusterTopologyBinding, entry: SchedulerTopologyStatus | None) -> None:
        if entry is None:
            return
        current = _entry_of(binding.status.scheduler_topology_statuses, entry.scheduler_name)
        if current is not None and current.in_sync == entry.in_sync:
            return
        if entry.in_sync:
            message = f"the topology of {entry.scheduler_name} is in sync"
            self._recorder.event(binding, "Normal", reasons.TOPOLOGY_IN_SYNC, message)
        else:
            self._recorder.event(binding, "Warning", reasons.TOPOLOGY_DRIFT_DETECTED, entry.message)


def plan_topology_status(
    binding: ClusterTopologyBinding, scheduler: str, entry: SchedulerTopologyStatus | None, clock: Clock
) -> Json | None:
    """The merge patch of a binding's status with one scheduler's entry; None if nothing changes."""
    before = binding.status.scheduler_topology_statuses
    after = _put(before, scheduler, entry)
    conditions = merged(binding.status.conditions, [_drift(after, binding.metadata.generation)], clock.now())
    generation = binding.metadata.generation
    unchanged = after == before and conditions == binding.status.conditions
    if unchanged and binding.status.observed_generation == generation:
        return None
    if not after and find(binding.status.conditions, reasons.SCHEDULER_TOPOLOGY_DRIFT) is None:
        return None
    status: Json = {
        "observedGeneration": generation,
        "schedulerTopologyStatuses": [_plain(status) for status in after],
        "conditions": as_json(conditions),
    }
    return {"metadata": {"resourceVersion": binding.metadata.resource_version}, "status": status}


def _status(scheduler: str, reference: str, message: str) -> SchedulerTopologyStatus:
    return SchedulerTopologyStatus(
        scheduler_name=scheduler, topology_reference=reference, in_sync=not message, message=message
    )


def _put(
    before: Sequence[SchedulerTopologyStatus], scheduler: str, entry: SchedulerTopologyStatus | None
) -> tuple[SchedulerTopologyStatus, ...]:
    if entry is not None and _entry_of(before, scheduler) is not None:
        return tuple(entry if status.scheduler_name == scheduler else status for status in before)
    kept = tuple(status for status in before if status.scheduler_name != scheduler)
    return (*kept, entry) if entry is not None else kept


def _entry_of(statuses: Sequence[SchedulerTopologyStatus], scheduler: str) -> SchedulerTopologyStatus | None:
    return next((status for status in statuses if status.scheduler_name == scheduler), None)


def _drift(statuses: Sequence[SchedulerTopologyStatus], generation: int) -> Condition:
    """The condition over all schedulers, computed from all entries whenever one changes."""
    drifted = [status for status in statuses if not status.in_sync]
    if not drifted:
        return condition(reasons.SCHEDULER_TOPOLOGY_DRIFT, False, reasons.IN_SYNC, "", generation)
    message = "; ".join(f"{status.scheduler_name}: {status.message}" for status in drifted)
    return condition(reasons.SCHEDULER_TOPOLOGY_DRIFT, True, reasons.DRIFT, message, generation)


def _plain(entry: SchedulerTopologyStatus) -> Json:
    plain: Json = msgspec.to_builtins(entry)
    return {"inSync": entry.in_sync, **plain}
