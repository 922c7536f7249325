"""The controller of one set replica: makes what is missing, takes away what is too much, and lets gangs go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec

from spinney.api import labels, reasons
from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.core import Pod, Service
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json, Object
from spinney.api.podgang import PodGang
from spinney.backends.admission import gang_annotations
from spinney.backends.registry import Choice
from spinney.grove import children, gates, handover, pods, podstate, scaling, termination, updates
from spinney.grove.devices import Devices
from spinney.grove.gangplan import Names, gang_body, gang_patch
from spinney.grove.layout import Clique, Gang
from spinney.grove.revisions import canonical
from spinney.grove.status import gangs as gang_status
from spinney.grove.summary import Summaries
from spinney.grove.view import View, look
from spinney.grove.world import World, split
from spinney.grove.writer import Work, Writer, all_of
from spinney.kube.cache import Key
from spinney.kube.controller import After
from spinney.kube.errors import ApiError, Conflict, ConnectionLost
from spinney.kube.events import Recorder
from spinney.kube.runtime import Runtime

_RECONCILE_ERROR = "ReconcileError"
_FINALIZERS = {
    PodClique.resource.kind: labels.CLIQUE_FINALIZER,
    PodCliqueScalingGroup.resource.kind: labels.SCALING_GROUP_FINALIZER,
}


class Replicas:
    """Reconciles set replicas; keys are namespace and `set/index`."""

    def __init__(
        self, world: World, runtime: Runtime, writer: Writer, recorder: Recorder, summaries: Summaries
    ) -> None:
        self._summaries = summaries
        # Set by the component: wakes the set's own reconcile.
        self.tell_set: Callable[[str, str], None] = lambda namespace, name: None
        self._world = world
        self._writer = writer
        self._recorder = recorder
        self._clock = runtime.clock
        self._names = Names(runtime.client.chance)
        # Why pods could not be made, as far as it was told: by replica, then by clique.
        self._failures: dict[Key, dict[str, str]] = {}
        self._devices = Devices(world, writer, runtime.client)

    async def reconcile(self, key: Key) -> After | None:
        """Bring one set replica closer to what it should be; the rest follows from what that changes."""
        namespace, name, index = split(key)
        pcs = self._world.sets.get(name, namespace)
        if pcs is None or index >= pcs.spec.replicas:
            self._failures.pop(key, None)
        if pcs is None or pcs.metadata.deletion_timestamp is not None:
            await self._let_go(key)
            return None
        if labels.SET_FINALIZER not in pcs.metadata.finalizers:
            return None
        if index >= pcs.spec.replicas:
            await self._remove(pcs, key)
            return None
        return await self._watched(pcs, index, key)

    async def _watched(self, pcs: PodCliqueSet, index: int, key: Key) -> After | None:
        """Keep the replica; what goes wrong is told on the set, until it goes well again."""
        error: Exception | None = None
        try:
            wish = await self._keep(look(self._world, pcs, index), key)
        except (Conflict, ConnectionLost):
            # Daily bread: the next attempt comes at once.
            raise
        except Exception as caught:
            error = caught
            raise
        else:
            self._failures.pop(key, None)
            return wish
        finally:
            if self._summaries.note_error((pcs.namespace, pcs.name), index, error, self._clock.now()):
                self.tell_set(pcs.namespace, pcs.name)
                # Told once, however often it is tried again.
                if error is not None:
                    self._recorder.event(pcs, "Warning", _RECONCILE_ERROR, f"replica {index}: {error}")

    async def _keep(self, view: View, key: Key) -> After | None:
        choice = self._world.choose(view.pcs)
        await self._clear(view)
        await all_of([self._make_service(view, key), self._make_groups(view), self._devices.make_domains(view, key)])
        await self._make_cliques(view)
        await all_of([self._make_autoscalers(view, key), self._devices.make_claims(view, key)])
        await self._make_gangs(view, choice)
        await self._make_pods(view, choice)
        await self._take_surplus(view, choice)
        await self._release(view, choice)
        if view.updating:
            await self._replace_outdated(view)
        return await self._terminate(view)

    async def _let_go(self, key: Key) -> None:
        """The set is gone or going: the garbage collector takes its children, and must not wait for us."""
        found = [*self._world.of(self._world.cliques, key), *self._world.of(self._world.groups, key)]
        leaving = [item for item in found if item.metadata.deletion_timestamp is not None]
        await all_of(self._writer.release(item, _FINALIZERS[item.resource.kind]) for item in leaving)
        await self._devices.release(key)

    async def _remove(self, pcs: PodCliqueSet, key: Key) -> None:
        """Take away a replica beyond the set's replicas: its gangs first, then everything else at once."""
        world = self._world
        gangs = world.of(world.gangs, key)
        await all_of(self._writer.delete(gang) for gang in gangs)
        rest: list[Object] = [
            *world.of(world.pods, key),
            *world.of(world.cliques, key),
            *world.of(world.groups, key),
            *world.of(world.services, key),
            *world.of(world.autoscalers, key),
        ]
        await all_of([self._delete(item) for item in rest])
        await self._devices.remove(key)
        if gangs:
            message = f"replica {split(key)[2]} was removed"
            self._recorder.event(pcs, "Normal", reasons.SET_REPLICA_DELETE_SUCCESSFUL, message)

    async def _delete(self, found: Object) -> None:
        if isinstance(found, Pod) and podstate.is_leaving(found):
            return
        await self._writer.delete(found, finalizer=_FINALIZERS.get(found.resource.kind, ""))

    async def _clear(self, view: View) -> None:
        """Let go of what is leaving, and delete what the layout has no place for: gangs first."""
        leaving = [self._writer.release(found, _FINALIZERS[found.resource.kind]) for found in view.leaving]
        gangs = [self._writer.delete(found) for found in view.excess if isinstance(found, PodGang)]
        await all_of([*leaving, *gangs])
        rest = [found for found in view.excess if not isinstance(found, PodGang)]
        await all_of([*(self._delete(found) for found in rest), *self._pods_of(view, rest)])

    def _pods_of(self, view: View, owners: list[PodClique | PodCliqueScalingGroup]) -> Iterator[Work]:
        for owner in owners:
            for pod in view.pods.get(owner.uid, ()):
                yield self._delete(pod)

    async def _make_service(self, view: View, key: Key) -> None:
        wanted = children.service(view.layout)
        found = next(iter(self._world.of(self._world.services, key)), None)
        if found is None:
            await self._writer.create(Service, wanted)
            return
        publish = wanted["spec"]["publishNotReadyAddresses"]
        if found.spec.publish_not_ready_addresses != publish:
            await self._writer.patch(found, {"spec": {"publishNotReadyAddresses": publish}})

    async def _make_groups(self, view: View) -> None:
        async def make(group_name: str, body: Json) -> None:
            view.groups[group_name] = await self._writer.create(PodCliqueScalingGroup, body)

        work = []
        for group in view.layout.groups:
            found = view.groups.get(group.name)
            if found is None:
                if group.name not in view.blocked:
                    work.append(make(group.name, children.scaling_group(view.layout, group)))
                continue
            patch = children.group_patch(view.layout, group, found)
            if patch:
                work.append(self._change(view.groups, found, patch))
        await all_of(work)

    async def _make_cliques(self, view: View) -> None:
        async def make(clique: Clique, owner: PodCliqueSet | PodCliqueScalingGroup) -> None:
            body = children.clique(view.layout, clique, owner)
            view.cliques[clique.name] = await self._writer.create(PodClique, body)

        work = []
        for clique in view.layout.cliques:
            found = view.cliques.get(clique.name)
            owner = view.groups.get(clique.group) if clique.group else view.pcs
            if found is None:
                if owner is not None and clique.name not in view.blocked:
                    work.append(make(clique, owner))
                continue
            # Under RollingRecreate members of scaling groups are replaced, never changed.
            if clique.group and not view.on_delete and not view.is_current(clique):
                continue
            patch = children.clique_patch(view.layout, clique, found)
            if patch:
                work.append(self._change(view.cliques, found, patch))
        await all_of(work)

    async def _change(
        self, into: dict[str, PodClique] | dict[str, PodCliqueScalingGroup], found: Object, patch: Json
    ) -> None:
        changed = await self._writer.patch(found, patch)
        if changed is not None:
            into[found.name] = changed  # type: ignore[assignment]  # of the kind that was handed in

    async def _make_autoscalers(self, view: View, key: Key) -> None:
        found = {item.name: item for item in self._world.of(self._world.autoscalers, key)}
        work: list[Work] = []
        for body in scaling.autoscalers(view.layout, view.groups, view.cliques):
            known = found.pop(body["metadata"]["name"], None)
            if known is None:
                work.append(self._writer.create(HorizontalPodAutoscaler, body))
            elif canonical(msgspec.to_builtins(known.spec)) != canonical(body["spec"]):
                work.append(self._writer.patch(known, {"spec": body["spec"]}))
        await all_of([*work, *(self._writer.delete(excess) for excess in found.values())])

    async def _make_gangs(self, view: View, choice: Choice) -> None:
        async def make(gang: Gang) -> None:
            specs = {clique.name: clique.template.spec.pod_spec for clique in gang.cliques}
            extra = gang_annotations(choice.backend, view.pcs, specs)
            found = view.gangs.get(gang.name)
            body = gang_body(view, gang, choice, extra, self._names)
            if found is None:
                view.gangs[gang.name] = await self._writer.create(PodGang, body)
                return
            patch = gang_patch(found, body)
            if patch:
                changed = await self._writer.patch(found, patch)
                if changed is not None:
                    view.gangs[gang.name] = changed

        # A gang is left alone while the name of one of its cliques is not free yet.
        await all_of(make(gang) for gang in view.layout.gangs if _is_whole(view, gang))

    async def _make_pods(self, view: View, choice: Choice) -> None:
        making = pods.Making(choice.backend, choice.scheduler_name, self._world.served, self._world.settings.init_image)

        async def make(place: pods.Place) -> None:
            try:
                pod = await self._writer.create(Pod, pods.build(view.layout, place, making))
            except ApiError as error:
                self._tell_failure(view, place, str(error))
                raise
            view.pods[place.stored.uid].append(pod)

        await all_of([make(place) for gang in view.layout.gangs for place in self._places(view, gang)])

    def _tell_failure(self, view: View, place: pods.Place, error: str) -> None:
        """Say on a clique why its pods cannot be made: once, however many there are and often it is tried again."""
        told = self._failures.setdefault(view.key, {})
        why = error.replace(place.name, place.clique.name)
        if told.get(place.clique.name) == why:
            return
        told[place.clique.name] = why
        message = f"pod {place.name} could not be created: {error}"
        self._recorder.event(place.stored, "Warning", reasons.POD_CREATE_FAILED, message)

    def _places(self, view: View, gang: Gang) -> Iterator[pods.Place]:
        """The pods that a gang names and that do not exist yet."""
        stored = view.gangs.get(gang.name)
        if stored is None or not _is_whole(view, gang):
            return
        referenced = gang_status.references(stored)
        for clique in gang.cliques:
            staying = view.staying(clique)
            known = {pod.name for pod in staying}
            missing = [name for name in referenced.get(clique.name, ()) if name not in known]
            free = scaling.free_indices(staying, len(missing))
            for name, index in zip(missing, free, strict=True):
                yield pods.Place(clique, view.cliques[clique.name], stored, name, index)

    async def _take_surplus(self, view: View, choice: Choice) -> None:
        """Scale cliques in, and clear away pods that ended although they should always run, or wait in vain."""
        work = []
        others = handover.others(self._world.registry, choice)
        for clique in view.layout.cliques:
            found = view.cliques.get(clique.name)
            if found is None:
                continue
            revision = found.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
            staying = view.staying(clique)
            dead = [pod for pod in staying if _ended(pod) or others.made(pod, found.spec.pod_spec)]
            living = [pod for pod in staying if pod not in dead]
            for pod in [*dead, *scaling.surplus(living, found.spec.replicas, revision)]:
                work.append(self._writer.delete(pod))
        await all_of(work)

    async def _release(self, view: View, choice: Choice) -> None:
        surplus_held = choice.backend.capabilities(self._world.served).surplus_held
        base_scheduled = gang_status.is_scheduled(view.members(view.layout.base_gang))
        gate = choice.backend.gate
        work = []
        for gang in view.layout.gangs:
            stored = view.gangs.get(gang.name)
            if stored is None or not _is_whole(view, gang):
                continue
            free = gates.releasable(
                stored,
                view.members(gang),
                gate,
                base_scheduled=not gang.base or base_scheduled,
                surplus_held=surplus_held,
            )
            work += [self._writer.patch_json(pod, gates.release_patch(pod, gate)) for pod in free]
        await all_of(work)

    async def _replace_outdated(self, view: View) -> None:
        """One step of a rolling update: some pods, or one replica of a scaling group, make room for the new."""
        work: list[Work] = []
        for clique in view.layout.cliques:
            if not clique.group:
                work += [self._writer.delete(pod) for pod in updates.pods_to_replace(view, clique)]
        for group in view.layout.groups:
            going = set(updates.replicas_to_replace(view, group))
            members = [clique for clique in view.layout.members(group) if clique.group_index in going]
            work += self._drop(view, [clique.name for clique in members])
        await all_of(work)

    async def _terminate(self, view: View) -> After | None:
        now = self._clock.now()
        verdict = termination.judge(view, now)
        if verdict.whole:
            await self._mark(view, now)
            message = f"replica {view.layout.index} stayed below its minimum for terminationDelay and is replaced"
            self._recorder.event(view.pcs, "Warning", reasons.SET_REPLICA_DELETE_SUCCESSFUL, message)
        await all_of(self._drop(view, list(verdict.cliques)))
        return After((verdict.wake - now).total_seconds()) if verdict.wake is not None else None

    async def _mark(self, view: View, now: datetime) -> None:
        """Say on every scaling group that its breach has been answered, so that it is not answered twice."""
        for found in view.groups.values():
            conditions = termination.marked(found, now)
            if conditions is not None:
                await self._writer.patch_status(found, {"conditions": conditions}, guarded=True)

    def _drop(self, view: View, cliques: list[str]) -> list[Work]:
        """Delete cliques with all their pods; they come back anew."""
        found = [view.cliques[name] for name in cliques if name in view.cliques]
        return [*(self._delete(clique) for clique in found), *self._pods_of(view, list(found))]


def _ended(pod: Pod) -> bool:
    return pod.status.phase == "Failed" and pod.spec.restart_policy == "Always"


def _is_whole(view: View, gang: Gang) -> bool:
    return all(clique.name in view.cliques for clique in gang.cliques)
