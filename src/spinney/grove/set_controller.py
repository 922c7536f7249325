"""The controller of a PodCliqueSet as a whole: finalizer, init container access, revision, rollout, status."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api import labels, reasons
from spinney.api.core import Secret, ServiceAccount
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json, Key
from spinney.api.rbac import Role, RoleBinding
from spinney.backends.registry import NoChoice
from spinney.grove.executor import Executor
from spinney.grove.model import init_access, names
from spinney.grove.model.changes import Create, Patch, PatchStatus, Step
from spinney.grove.model.gangs import clique_priorities
from spinney.grove.model.layout import lay_out
from spinney.grove.model.metadata import is_part_of, is_paused
from spinney.grove.observe import observe_leftovers
from spinney.grove.replica.removal import plan_deleted_set
from spinney.grove.status import rollout
from spinney.grove.status import sets as set_status
from spinney.grove.status.summary import SET_ITSELF, Summaries
from spinney.grove.world import BY_SET, World
from spinney.kube.clock import Clock
from spinney.kube.controllers.controller import After
from spinney.kube.controllers.events import Recorder
from spinney.kube.writer import NameTaken


class SetController:
    """Reconciles what the replicas of a set have in common."""

    def __init__(
        self, world: World, executor: Executor, recorder: Recorder, clock: Clock, summaries: Summaries
    ) -> None:
        self._world = world
        self._executor = executor
        self._recorder = recorder
        self._clock = clock
        self._summaries = summaries
        # By the set's UID: the generation whose token Secret was created. Nobody may read Secrets, so we cannot look.
        self._tokens: dict[str, int] = {}
        # By the set's UID: its backend and warnings as they were last recorded.
        self._recorded: dict[str, tuple[str, ...]] = {}

    async def reconcile(self, key: Key) -> After | None:
        """Bring the set closer to its wanted state."""
        namespace, name = key
        pcs = self._world.sets.get(key)
        if pcs is None:
            self._summaries.drop(key)
            return None
        if pcs.metadata.deletion_timestamp is not None:
            for step in self._plan_deletion(pcs):
                await self._executor.apply(step.changes)
            return None
        if is_paused(pcs):
            self._record_pause(pcs)
            return None
        if labels.SET_FINALIZER not in pcs.metadata.finalizers:
            finalizers = [*pcs.metadata.finalizers, labels.SET_FINALIZER]
            await self._executor.apply([Patch(pcs, {"metadata": {"finalizers": finalizers}}, guarded=True)])
        self._record_backend(pcs)
        taken = await self._create_access(pcs)
        revision = rollout.new_revision(pcs, self._world.cliques.by(BY_SET, f"{namespace}/{name}"), self._clock.now())
        if revision:
            # The schema requires both counters in the first status, and `kubectl get pcs` shows what is ready from it.
            available = pcs.status.available_replicas
            first = {
                "ready": f"{available}/{pcs.spec.replicas}",
                "availableReplicas": available,
                "updatedReplicas": 0,
            }
            await self._executor.apply([PatchStatus(pcs, {**first, **revision}, guarded=True)])
            return None
        async with self._executor.at_status_priority():
            if patch := self._status_patch(pcs, key):
                await self._executor.apply([PatchStatus(pcs, patch, guarded=True)])
        if taken is not None:
            raise taken
        return None

    def _plan_deletion(self, pcs: PodCliqueSet) -> Iterator[Step]:
        replicas = (observe_leftovers(self._world, key) for key in _replica_keys(pcs))
        domains = [domain for domain in self._world.domains or () if is_part_of(domain, pcs)]
        return plan_deleted_set(pcs, replicas, domains)

    def _record_pause(self, pcs: PodCliqueSet) -> None:
        """Record once that the set is paused."""
        if self._recorded.get(pcs.uid) != (labels.PAUSED,):
            self._recorded[pcs.uid] = (labels.PAUSED,)
            message = f"the operator leaves this set alone until its annotation {labels.PAUSED} is gone"
            self._recorder.event(pcs, "Normal", reasons.PAUSED, message)

    def _record_backend(self, pcs: PodCliqueSet) -> None:
        """Record once which backend places the set, and what is unusual about it."""
        try:
            choice = self._world.choose(pcs)
        except NoChoice as error:
            self._recorder.event(pcs, "Warning", reasons.BACKEND_WARNING, str(error))
            return
        priorities = clique_priorities(lay_out(pcs, 0, {}))
        facts = (choice.backend.name, *choice.warnings, *priorities)
        if self._recorded.get(pcs.uid) == facts:
            return
        self._recorded[pcs.uid] = facts
        message = f"backend {choice.backend.name} places the gangs of this set: {choice.why}"
        self._recorder.event(pcs, "Normal", reasons.BACKEND_CHOSEN, message)
        for warning in choice.warnings:
            self._recorder.event(pcs, "Warning", reasons.BACKEND_WARNING, warning)
        if len(priorities) > 1 and not pcs.spec.template.priority_class_name:
            message = f"cliques name different priority classes ({', '.join(priorities)}); the gang has {priorities[0]}"
            self._recorder.event(pcs, "Warning", reasons.PRIORITY_CLASSES_DIFFER, message)

    async def _create_access(self, pcs: PodCliqueSet) -> NameTaken | None:
        """Create what init containers need; a name that another object holds is reported on the set and returned."""
        taken: NameTaken | None = None
        try:
            for step in self._plan_access(pcs):
                await self._executor.apply(step.changes)
        except NameTaken as error:
            taken = error
        if self._summaries.note_error((pcs.namespace, pcs.name), SET_ITSELF, taken, self._clock.now()) and taken:
            self._recorder.event(pcs, "Warning", reasons.RECONCILE_ERROR, str(taken))
        return taken

    def _plan_access(self, pcs: PodCliqueSet) -> Iterator[Step]:
        world, namespace = self._world, pcs.namespace
        first: list[Create] = []
        if world.accounts.get((namespace, names.service_account(pcs.name))) is None:
            first.append(Create(ServiceAccount, init_access.service_account(pcs)))
        if world.roles.get((namespace, names.role(pcs.name))) is None:
            first.append(Create(Role, init_access.role(pcs)))
        yield Step(tuple(first))
        # The API server refuses a token for an account, and a binding to a role, that do not exist.
        second: list[Create] = []
        if world.role_bindings.get((namespace, names.role(pcs.name))) is None:
            second.append(Create(RoleBinding, init_access.role_binding(pcs)))
        if first or second or self._tokens.get(pcs.uid) != pcs.metadata.generation:
            second.append(Create(Secret, init_access.token_secret(pcs)))
        yield Step(tuple(second))
        self._tokens[pcs.uid] = pcs.metadata.generation

    def _status_patch(self, pcs: PodCliqueSet, key: Key) -> Json:
        self._summaries.drop(key, pcs.spec.replicas)
        summaries = self._summaries.of(key, pcs.spec.replicas, pcs.metadata.generation)
        if summaries is None:
            return {}
        condition = set_status.topology_condition(pcs, self._world.levels(pcs), self._world.settings.topology_aware)
        errors = self._summaries.errors_of(key, pcs.spec.replicas)
        return set_status.status_patch(pcs, summaries, errors, condition, self._clock.now())


def _replica_keys(pcs: PodCliqueSet) -> Iterator[Key]:
    return ((pcs.namespace, f"{pcs.name}/{index}") for index in range(pcs.spec.replicas))
