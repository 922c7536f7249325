"""Keeps a scheduler's own topology objects in step with ClusterTopologyBindings: written, or checked for drift."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from spinney.api import reasons
from spinney.api.grove import ClusterTopologyBinding, SchedulerTopologyStatus
from spinney.api.meta import Condition, Json, Key, Resource
from spinney.api.untyped import Untyped
from spinney.backends.interface import TopologyAware
from spinney.backends.sync import Targets
from spinney.kube.caches.cache import Change
from spinney.kube.clock import Clock
from spinney.kube.conditions import as_json, condition, find, merged
from spinney.kube.controllers.controller import After, Controller
from spinney.kube.controllers.events import Recorder
from spinney.kube.runtime import Runtime
from spinney.kube.writer import Blocked

_RETRY_SECONDS = 15.0


class TopologyController:
    """The topology side of one backend; it owns that backend's entry in the status of every binding."""

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
        """Look at every binding again whenever one of the scheduler's objects changes."""
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
        found = self._targets.all(backend.topology_resource)
        if not named and not found:
            # Nobody uses this scheduler's topology here: there is nothing to be out of step with.
            return None
        return _status(backend.topology_scheduler, reference, backend.topology_drift(binding, reference, found))

    def _announce(self, binding: ClusterTopologyBinding, entry: SchedulerTopologyStatus | None) -> None:
        if entry is None:
            return
        known = _known(binding.status.scheduler_topology_statuses, entry.scheduler_name)
        if known is not None and known.in_sync == entry.in_sync:
            return
        if entry.in_sync:
            message = f"the topology of {entry.scheduler_name} is in step"
            self._recorder.event(binding, "Normal", reasons.TOPOLOGY_IN_SYNC, message)
        else:
            self._recorder.event(binding, "Warning", reasons.TOPOLOGY_DRIFT_DETECTED, entry.message)


def plan_topology_status(
    binding: ClusterTopologyBinding, scheduler: str, entry: SchedulerTopologyStatus | None, clock: Clock
) -> Json | None:
    """The merge patch that puts one scheduler's entry into a binding's status; None where it is there already."""
    before = binding.status.scheduler_topology_statuses
    after = _put(before, scheduler, entry)
    conditions = merged(binding.status.conditions, [_drift(after, binding.metadata.generation)], clock)
    generation = binding.metadata.generation
    if after == before and conditions is None and binding.status.observed_generation == generation:
        return None
    if not after and find(binding.status.conditions, reasons.SCHEDULER_TOPOLOGY_DRIFT) is None:
        return None
    status: Json = {
        "observedGeneration": generation,
        "schedulerTopologyStatuses": [_plain(found) for found in after],
        "conditions": as_json(conditions if conditions is not None else binding.status.conditions),
    }
    return {"metadata": {"resourceVersion": binding.metadata.resource_version}, "status": status}


def _status(scheduler: str, reference: str, message: str) -> SchedulerTopologyStatus:
    return SchedulerTopologyStatus(
        scheduler_name=scheduler, topology_reference=reference, in_sync=not message, message=message
    )


def _put(
    before: Sequence[SchedulerTopologyStatus], scheduler: str, entry: SchedulerTopologyStatus | None
) -> tuple[SchedulerTopologyStatus, ...]:
    if entry is not None and _known(before, scheduler) is not None:
        return tuple(entry if found.scheduler_name == scheduler else found for found in before)
    kept = tuple(found for found in before if found.scheduler_name != scheduler)
    return (*kept, entry) if entry is not None else kept


def _known(statuses: Sequence[SchedulerTopologyStatus], scheduler: str) -> SchedulerTopologyStatus | None:
    return next((found for found in statuses if found.scheduler_name == scheduler), None)


def _drift(statuses: Sequence[SchedulerTopologyStatus], generation: int) -> Condition:
    """One condition over all schedulers: whoever changes an entry computes it anew from all of them."""
    out = [found for found in statuses if not found.in_sync]
    if not out:
        return condition(reasons.SCHEDULER_TOPOLOGY_DRIFT, False, reasons.IN_SYNC, "", generation)
    message = "; ".join(f"{found.scheduler_name}: {found.message}" for found in out)
    return condition(reasons.SCHEDULER_TOPOLOGY_DRIFT, True, reasons.DRIFT, message, generation)


def _plain(entry: SchedulerTopologyStatus) -> Json:
    plain: Json = msgspec.to_builtins(entry)
    return {"inSync": entry.in_sync, **plain}
