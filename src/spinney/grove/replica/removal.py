"""Takes away what a set replica has no place for: surplus, outdated, left over from a removed replica or set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from spinney.api import labels, reasons
from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Key, Object
from spinney.api.owners import controlled_by
from spinney.api.podgang import PodGang
from spinney.backends.registry import Choice
from spinney.grove.model import pod_state, scaling, updates
from spinney.grove.model.view import View
from spinney.grove.replica import backend_change
from spinney.grove.world import World, split
from spinney.grove.writer import Writer
from spinney.kube.caches.cache import Cache
from spinney.kube.controllers.events import Recorder
from spinney.kube.parallel import Work, all_of

_FINALIZERS = {
    PodClique.resource.kind: labels.CLIQUE_FINALIZER,
    PodCliqueScalingGroup.resource.kind: labels.SCALING_GROUP_FINALIZER,
}
# How many replicas of a set that is going are taken away together.
_REPLICAS_AT_ONCE = 100


class Remover:
    """Deletes, and lets go of what others have deleted."""

    def __init__(self, world: World, writer: Writer, recorder: Recorder) -> None:
        self._world = world
        self._writer = writer
        self._recorder = recorder

    async def let_go(self, key: Key) -> None:
        """The set is gone or going: what is leaving takes along what it owns, and must not wait for us."""
        cliques, groups = self._world.of(self._world.cliques, key), self._world.of(self._world.groups, key)
        leaving = [item for item in (*cliques, *groups) if item.metadata.deletion_timestamp is not None]
        for item in leaving:
            await self._take_along(item, [*cliques, *self._world.of(self._world.pods, key)])
        await all_of(self._writer.release(item, _FINALIZERS[item.resource.kind]) for item in leaving)

    async def clear_away(self, pcs: PodCliqueSet) -> None:
        """Take away what a set that is going owns; what that owns goes in its turn, as it leaves."""
        keys = [(pcs.namespace, f"{pcs.name}/{index}") for index in range(pcs.spec.replicas)]
        for begin in range(0, len(keys), _REPLICAS_AT_ONCE):
            some = keys[begin : begin + _REPLICAS_AT_ONCE]
            await self._take_along(pcs, [item for key in some for item in self._besides_pods(key)])

    async def _take_along(self, owner: Object, found: Iterable[Object]) -> None:
        """Delete what an owner that is going owns, as the garbage collector would, but not at its pace.

        Only as it was seen: an orphaning deletion takes the owner references off, and then nothing may go.
        """
        if labels.ORPHAN_FINALIZER not in owner.metadata.finalizers:
            owned = [item for item in found if controlled_by(item.metadata, owner)]
            await all_of([self._writer.delete_unchanged(item) for item in owned])

    async def remove(self, pcs: PodCliqueSet, key: Key) -> None:
        """Take away a replica beyond the set's replicas: its pods, and when they go everything else."""
        world = self._world
        staying = [pod for pod in world.of(world.pods, key) if not pod_state.is_terminating(pod)]
        if staying:
            await all_of([self._delete(pod) for pod in staying])
            # Their going wakes this replica again; where many are removed, the pods of all go before the rest of each.
            return
        if world.of(world.gangs, key):
            message = f"replica {split(key)[2]} was removed"
            self._recorder.event(pcs, "Normal", reasons.SET_REPLICA_DELETE_SUCCESSFUL, message)
        await all_of([self._delete(item) for item in self._besides_pods(key)])

    def _besides_pods(self, key: Key) -> list[Object]:
        world = self._world
        caches: tuple[Cache[Any], ...] = (
            world.gangs,
            world.cliques,
            world.groups,
            world.services,
            world.autoscalers,
        )
        return [item for cache in caches for item in world.of(cache, key)]

    async def _delete(self, found: Object) -> None:
        if isinstance(found, Pod) and pod_state.is_terminating(found):
            return
        await self._writer.delete(found, finalizer=_FINALIZERS.get(found.resource.kind, ""))

    async def clear(self, view: View) -> None:
        """Let go of what is leaving, and delete what the layout has no place for: gangs first."""
        leaving = [self._writer.release(found, _FINALIZERS[found.resource.kind]) for found in view.terminating]
        gangs = [self._writer.delete(found) for found in view.excess if isinstance(found, PodGang)]
        await all_of([*leaving, *gangs])
        rest = [found for found in view.excess if not isinstance(found, PodGang)]
        await all_of([*(self._delete(found) for found in rest), *self._pods_of(view, rest)])

    async def take_surplus(self, view: View, choice: Choice) -> None:
        """Scale cliques in, and clear away pods that ended although they should always run, or wait in vain."""
        work = []
        others = backend_change.others(self._world.registry, choice)
        for clique in view.layout.cliques:
            found = view.cliques.get(clique.name)
            if found is None:
                continue
            revision = found.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
            staying = view.active_pods(clique)
            dead = [pod for pod in staying if _ended(pod) or others.made(pod, found.spec.pod_spec)]
            living = [pod for pod in staying if pod not in dead]
            for pod in [*dead, *scaling.surplus(living, found.spec.replicas, revision)]:
                work.append(self._writer.delete(pod))
        await all_of(work)

    async def replace_outdated(self, view: View) -> None:
        """One step of a rolling update: some pods, or one replica of a scaling group, make room for the new."""
        work: list[Work] = []
        for clique in view.layout.cliques:
            if not clique.group:
                work += [self._writer.delete(pod) for pod in updates.pods_to_replace(view, clique)]
        for group in view.layout.groups:
            going = set(updates.replicas_to_replace(view, group))
            members = [clique for clique in view.layout.members(group) if clique.group_index in going]
            work += self.drop(view, [clique.name for clique in members])
        await all_of(work)

    def drop(self, view: View, cliques: list[str]) -> list[Work]:
        """Delete cliques with all their pods; they come back anew."""
        found = [view.cliques[name] for name in cliques if name in view.cliques]
        return [*(self._delete(clique) for clique in found), *self._pods_of(view, list(found))]

    def _pods_of(self, view: View, owners: list[PodClique | PodCliqueScalingGroup]) -> Iterator[Work]:
        for owner in owners:
            for pod in view.pods.get(owner.uid, ()):
                yield self._delete(pod)


def _ended(pod: Pod) -> bool:
    return pod.status.phase == "Failed" and pod.spec.restart_policy == "Always"
