"""The controller of a PodCliqueSet as a whole: finalizer, account, revision, whose turn it is, status."""

from __future__ import annotations

from spinney.api import labels, reasons
from spinney.api.core import Secret, ServiceAccount
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Key
from spinney.api.owners import controlled_by
from spinney.api.rbac import Role, RoleBinding
from spinney.backends.registry import MixedSchedulers, UnknownBackend
from spinney.grove.model import init_access, names, pod_state
from spinney.grove.model.gangs import clique_priorities
from spinney.grove.model.layout import lay_out
from spinney.grove.model.metadata import is_part_of
from spinney.grove.replica.removal import Remover
from spinney.grove.status import rollout
from spinney.grove.status import sets as set_status
from spinney.grove.status.summary import SET_ITSELF, Summaries
from spinney.grove.world import BY_SET, World
from spinney.grove.writer import NameTaken, Writer
from spinney.kube.clock import Clock
from spinney.kube.controllers.controller import After
from spinney.kube.controllers.events import Recorder
from spinney.kube.parallel import Work, all_of


class SetController:
    """Reconciles what the replicas of a set have in common."""

    def __init__(self, world: World, writer: Writer, recorder: Recorder, clock: Clock, summaries: Summaries) -> None:
        self._world = world
        self._writer = writer
        self._remover = Remover(world, writer, recorder)
        self._recorder = recorder
        self._clock = clock
        self._summaries = summaries
        self._told: dict[str, tuple[str, ...]] = {}

    async def reconcile(self, key: Key) -> After | None:
        """Bring the set closer to what it should be."""
        namespace, name = key
        pcs = self._world.sets.get((namespace, name))
        if pcs is None:
            self._summaries.drop(key)
            return None
        if pcs.metadata.deletion_timestamp is not None:
            await self._leave(pcs)
            return None
        if labels.SET_FINALIZER not in pcs.metadata.finalizers:
            await self._writer.patch(
                pcs, {"metadata": {"finalizers": [*pcs.metadata.finalizers, labels.SET_FINALIZER]}}
            )
        self._tell(pcs)
        taken = await self._make_access(pcs)
        revision = rollout.new_revision(pcs, self._world.cliques.by(BY_SET, f"{namespace}/{name}"), self._clock.now())
        if revision:
            await self._writer.patch_status(pcs, self._with_counters(pcs, revision), guarded=False)
            return None
        async with self._writer.late():
            await self._write_status(pcs, key)
        if taken is not None:
            raise taken
        return None

    def _with_counters(self, pcs: PodCliqueSet, patch: dict[str, object]) -> dict[str, object]:
        """The schema requires both counters in the first status."""
        return {"availableReplicas": pcs.status.available_replicas, "updatedReplicas": 0, **patch}

    async def _leave(self, pcs: PodCliqueSet) -> None:
        """Take away what the set owns, and let it go; what is missed the garbage collector takes."""
        await self._remover.clear_away(pcs)
        if self._world.domains is not None:
            domains = [domain for domain in self._world.domains if is_part_of(domain, pcs)]
            await all_of(self._writer.release(domain, labels.COMPUTE_DOMAIN_FINALIZER) for domain in domains)
        await self._writer.release(pcs, labels.SET_FINALIZER)

    def _tell(self, pcs: PodCliqueSet) -> None:
        """Say once which backend takes the set, and what is odd about it."""
        try:
            choice = self._world.choose(pcs)
        except (MixedSchedulers, UnknownBackend) as error:
            self._recorder.event(pcs, "Warning", reasons.BACKEND_WARNING, str(error))
            return
        priorities = clique_priorities(lay_out(pcs, 0, {}))
        news = (choice.backend.name, *choice.warnings, *priorities)
        if self._told.get(pcs.uid) == news:
            return
        self._told[pcs.uid] = news
        message = f"backend {choice.backend.name} places the gangs of this set: {choice.why}"
        self._recorder.event(pcs, "Normal", reasons.BACKEND_CHOSEN, message)
        for warning in choice.warnings:
            self._recorder.event(pcs, "Warning", reasons.BACKEND_WARNING, warning)
        if len(priorities) > 1 and not pcs.spec.template.priority_class_name:
            message = f"cliques name different priority classes ({', '.join(priorities)}); the gang has {priorities[0]}"
            self._recorder.event(pcs, "Warning", reasons.PRIORITY_CLASSES_DIFFER, message)

    async def _make_access(self, pcs: PodCliqueSet) -> NameTaken | None:
        """What init containers need; where another holds one of the names, that is told on the set and handed back."""
        taken: NameTaken | None = None
        try:
            await self._make_account(pcs)
        except NameTaken as error:
            taken = error
        if self._summaries.note_error((pcs.namespace, pcs.name), SET_ITSELF, taken, self._clock.now()) and taken:
            self._recorder.event(pcs, "Warning", reasons.RECONCILE_ERROR, str(taken))
        return taken

    async def _make_account(self, pcs: PodCliqueSet) -> None:
        world, space = self._world, pcs.namespace
        work: list[Work] = []
        if world.accounts.get((space, names.service_account(pcs.name))) is None:
            work.append(self._writer.create(ServiceAccount, init_access.service_account(pcs)))
        if world.roles.get((space, names.role(pcs.name))) is None:
            work.append(self._writer.create(Role, init_access.role(pcs)))
        await all_of(work)
        # The API server refuses a token for an account, and a binding to a role, that is not there yet.
        bound: list[Work] = []
        if world.role_bindings.get((space, names.role(pcs.name))) is None:
            bound.append(self._writer.create(RoleBinding, init_access.role_binding(pcs)))
        if world.secrets.get((space, names.token_secret(pcs.name))) is None:
            bound.append(self._writer.create(Secret, init_access.token_secret(pcs)))
        await all_of(bound)
        await self._drop_older_token(pcs)

    async def _drop_older_token(self, pcs: PodCliqueSet) -> None:
        """Take away the token under the name of earlier versions, once ours is filled and no pod mounts the other."""
        world, name = self._world, names.older_token_secret(pcs.name)
        older = world.secrets.get((pcs.namespace, name))
        ours = world.secrets.get((pcs.namespace, names.token_secret(pcs.name)))
        if older is None or ours is None or "token" not in ours.data or not controlled_by(older.metadata, pcs):
            return
        keys = [(pcs.namespace, f"{pcs.name}/{index}") for index in range(pcs.spec.replicas)]
        pods = (pod for key in keys for pod in world.of(world.pods, key) if not pod_state.is_terminating(pod))
        if not any(volume.secret and volume.secret.secret_name == name for pod in pods for volume in pod.spec.volumes):
            await self._writer.delete(older)

    async def _write_status(self, pcs: PodCliqueSet, key: Key) -> None:
        self._summaries.drop(key, pcs.spec.replicas)
        summaries = self._summaries.of(key, pcs.spec.replicas, pcs.metadata.generation)
        if summaries is None:
            return
        condition = set_status.topology_condition(pcs, self._world.levels(pcs), self._world.settings.topology_aware)
        errors = self._summaries.errors_of(key, pcs.spec.replicas)
        patch = set_status.status_patch(pcs, summaries, errors, condition, self._clock.now())
        if patch:
            await self._writer.patch_status(pcs, patch)
