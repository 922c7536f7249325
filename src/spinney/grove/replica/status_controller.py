"""The controller that writes the statuses of one set replica's objects."""

from __future__ import annotations

from collections.abc import Callable

from spinney.api.meta import Key
from spinney.grove.executor import Executor
from spinney.grove.model.metadata import is_paused
from spinney.grove.observe import observe
from spinney.grove.status.plan import plan_status
from spinney.grove.status.summary import Summaries
from spinney.grove.world import World, split
from spinney.kube.clock import Clock
from spinney.kube.controllers.controller import After
from spinney.kube.controllers.events import Recorder


class StatusController:
    """Writes the statuses of a replica's cliques, scaling groups and gangs, and reports changes to the set."""

    def __init__(
        self,
        world: World,
        executor: Executor,
        recorder: Recorder,
        clock: Clock,
        summaries: Summaries,
        *,
        summary_changed: Callable[[Key], None],
    ) -> None:
        """`summary_changed` is called with a set's key when the summary of one of its replicas has changed."""
        self._world = world
        self._executor = executor
        self._recorder = recorder
        self._clock = clock
        self._summaries = summaries
        self._summary_changed = summary_changed

    async def reconcile(self, key: Key) -> After | None:
        """Write the statuses that differ, from the state at the time when status writes get their turn."""
        async with self._executor.at_status_priority():
            return await self._write(key)

    async def _write(self, key: Key) -> After | None:
        namespace, name, index = split(key)
        pcs = self._world.sets.get((namespace, name))
        if pcs is None or pcs.metadata.deletion_timestamp is not None or index >= pcs.spec.replicas:
            return None
        if is_paused(pcs):
            return None
        now, set_key = self._clock.now(), (namespace, name)
        view = observe(self._world, pcs, index)
        plan = plan_status(view, self._summaries.last_error(set_key, index), self._world.nodes, now)
        for patch in plan.patches:
            await self._executor.apply([patch])
        # After the statuses: a write that failed is repeated, and what it tells with it.
        for stored, reason, message in plan.warnings:
            self._recorder.event(stored, "Warning", reason, message)
        if self._summaries.put(set_key, index, plan.summary):
            self._summary_changed(set_key)
        return After((plan.look_again - now).total_seconds()) if plan.look_again is not None else None
