"""The controller of one set replica: plans it, and applies the plan step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spinney.api import labels, reasons
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Key
from spinney.grove.executor import Executor
from spinney.grove.model.changes import Create, Step
from spinney.grove.model.metadata import is_paused
from spinney.grove.model.pod_names import PodNames
from spinney.grove.model.view import View
from spinney.grove.observe import observe, observe_leftovers
from spinney.grove.replica.confirmation import confirmed
from spinney.grove.replica.facts import Facts
from spinney.grove.replica.plan import plan_replica
from spinney.grove.replica.removal import plan_orphaned_replica, plan_removed_replica
from spinney.grove.replica.service_delay import ServiceDelay
from spinney.grove.status.summary import Summaries
from spinney.grove.world import World, split
from spinney.kube.controllers.controller import After
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import ApiError, Conflict, ConnectionLost
from spinney.kube.runtime import Runtime
from spinney.kube.writer import NameTaken


class ReplicaController:
    """Reconciles set replicas; keys are namespace and `set/index`."""

    def __init__(
        self,
        world: World,
        runtime: Runtime,
        executor: Executor,
        recorder: Recorder,
        summaries: Summaries,
        *,
        error_changed: Callable[[PodCliqueSet, int], None],
        service_is_due: Callable[[Key], None],
    ) -> None:
        """`error_changed` is called when a replica begins or ceases to fail, `service_is_due` when it need not wait."""
        self._world = world
        self._executor = executor
        self._recorder = recorder
        self._clock = runtime.clock
        self._summaries = summaries
        self._error_changed = error_changed
        self._service_delay = ServiceDelay(runtime.clock, service_is_due)
        chance = runtime.client.chance
        self._pod_names = PodNames(lambda clique: f"{clique}-{chance.suffix()}")
        # Why pods could not be created, as far as it was recorded: by replica, then by clique.
        self._failures: dict[Key, dict[str, str]] = {}

    async def reconcile(self, key: Key) -> After | None:
        """Bring one set replica closer to its wanted state; the rest follows from what that changes."""
        namespace, name, index = split(key)
        pcs = self._world.sets.get((namespace, name))
        if pcs is None or index >= pcs.spec.replicas:
            self._failures.pop(key, None)
            self._service_delay.forget(key)
        if pcs is None or pcs.metadata.deletion_timestamp is not None:
            await self._apply(plan_orphaned_replica(observe_leftovers(self._world, key)))
            return None
        if labels.SET_FINALIZER not in pcs.metadata.finalizers or is_paused(pcs):
            return None
        if index >= pcs.spec.replicas:
            steps = plan_removed_replica(pcs, index, observe_leftovers(self._world, key))
            await self._apply(confirmed(steps, pcs))
            return None
        return await self._reconcile(pcs, index, key)

    async def _apply(self, steps: Iterable[Step]) -> None:
        for step in steps:
            await self._executor.apply(step.changes)

    async def _reconcile(self, pcs: PodCliqueSet, index: int, key: Key) -> After | None:
        """Keep the replica; what fails is reported on the set until it succeeds."""
        error: Exception | None = None
        try:
            again = await self._keep(observe(self._world, pcs, index), key)
        except (Conflict, ConnectionLost):
            # Expected under load: the retry comes at once.
            raise
        except Exception as caught:
            error = caught
            raise
        else:
            self._failures.pop(key, None)
            return again
        finally:
            if self._summaries.note_error((pcs.namespace, pcs.name), index, error, self._clock.now()):
                self._error_changed(pcs, index)
                # Recorded once, however often it is retried.
                if error is not None:
                    self._recorder.event(pcs, "Warning", reasons.RECONCILE_ERROR, f"replica {index}: {error}")

    async def _keep(self, view: View, key: Key) -> After | None:
        facts = self._facts(view.pcs)
        waits: list[float] = []
        for step in plan_replica(view, facts):
            if step.postponable is not None:
                pods = step.postponable
                wait = self._service_delay.seconds(key, ungated=pods.ungated, scheduled=pods.scheduled)
                if wait:
                    waits.append(wait)
                    continue
            if step.changes:
                await self._executor.apply(
                    step.changes, view.put, lambda create, error: self._report(key, create, error)
                )
            if step.look_again is not None:
                waits.append((step.look_again - facts.now).total_seconds())
        return After(min(waits)) if waits else None

    def _facts(self, pcs: PodCliqueSet) -> Facts:
        world = self._world
        choice = world.choose(pcs)
        return Facts(
            choice=choice,
            served=world.served,
            init_image=world.settings.init_image,
            other_gates=frozenset(backend.gate for backend in world.registry) - {choice.backend.gate},
            pod_names=self._pod_names,
            now=self._clock.now(),
            nodes=world.nodes,
        )

    def _report(self, key: Key, create: Create, error: ApiError) -> None:
        """Record on a clique why its pods cannot be created: once, however many there are and often it is retried."""
        clique = create.clique
        if clique is None:
            return
        name, message = create.body["metadata"]["name"], str(error)
        if isinstance(error, NameTaken):
            self._pod_names.give_up((clique.namespace, clique.name), name)
        recorded = self._failures.setdefault(key, {})
        reason = message.replace(name, clique.name)
        if recorded.get(clique.name) == reason:
            return
        recorded[clique.name] = reason
        text = f"pod {name} could not be created: {message}"
        self._recorder.event(clique, "Warning", reasons.POD_CREATE_FAILED, text)
