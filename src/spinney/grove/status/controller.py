"""The status of everything in one set replica, computed from its pods and written only where it changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from spinney.api import reasons
from spinney.api.conditions import is_true
from spinney.api.meta import Json, Object
from spinney.api.podgang import PodGang
from spinney.grove.model import updates
from spinney.grove.model.layout import Clique, Gang, Group
from spinney.grove.model.view import View, look
from spinney.grove.status import cliques, gangs, groups, written
from spinney.grove.status.placed import gang_patch, gang_score, gang_status
from spinney.grove.status.summary import GangSummary, Summaries, Summary
from spinney.grove.world import World, split
from spinney.grove.writer import Writer
from spinney.kube.caches.cache import Key
from spinney.kube.clock import Clock
from spinney.kube.controllers.controller import After
from spinney.kube.controllers.events import Recorder


class StatusWrite(NamedTuple):
    """What a status should say; `guarded` where someone else writes the same status."""

    found: Object
    patch: Json
    guarded: bool


class ReplicaStatus:
    """Writes what is to be said about a replica's cliques, scaling groups and gangs, and tells the set."""

    def __init__(self, world: World, writer: Writer, recorder: Recorder, clock: Clock, summaries: Summaries) -> None:
        self._world = world
        self._writer = writer
        self._recorder = recorder
        self._clock = clock
        self._summaries = summaries
        # Set by the component: wakes the set's own reconcile.
        self.tell_set: Callable[[str, str], None] = lambda namespace, name: None

    async def reconcile(self, key: Key) -> After | None:
        """Write what changed, as it is when its turn comes."""
        async with self._writer.late():
            return await self._write(key)

    async def _write(self, key: Key) -> After | None:
        namespace, name, index = split(key)
        pcs = self._world.sets.get(name, namespace)
        if pcs is None or pcs.metadata.deletion_timestamp is not None or index >= pcs.spec.replicas:
            return None
        view = look(self._world, pcs, index)
        now = self._clock.now()
        work: list[StatusWrite] = []
        for clique in view.layout.cliques:
            work += self._clique(view, clique, now)
        for group in view.layout.groups:
            work += self._group(view, group, now)
        base = gangs.is_scheduled(view.members(view.layout.base_gang))
        told: list[GangSummary] = []
        for gang in view.layout.gangs:
            work += self._gang(view, gang, base, now, told)
        for found, patch, guarded in work:
            await self._writer.patch_status(found, patch, guarded=guarded)
        if self._summaries.put((namespace, name), index, summarize(view, tuple(told))):
            self.tell_set(namespace, name)
        return _look_again(view, now)

    def _clique(self, view: View, clique: Clique, now: datetime) -> list[StatusWrite]:
        found = view.cliques.get(clique.name)
        if found is None:
            return []
        patch = written.clique_patch(view, clique, found, now)
        if found.status.scheduled_replicas > 0 and patch.get("scheduledReplicas") == 0:
            message = f"all {found.status.scheduled_replicas} scheduled pods were lost"
            self._recorder.event(found, "Warning", reasons.ALL_SCHEDULED_REPLICAS_LOST, message)
        return [StatusWrite(found, patch, False)] if patch else []

    def _group(self, view: View, group: Group, now: datetime) -> list[StatusWrite]:
        found = view.groups.get(group.name)
        if found is None:
            return []
        patch = written.group_patch(view, group, found, now)
        if found.status.scheduled_replicas > 0 and patch.get("scheduledReplicas") == 0:
            message = f"all {found.status.scheduled_replicas} scheduled replicas were lost"
            self._recorder.event(found, "Warning", reasons.ALL_SCHEDULED_REPLICAS_LOST, message)
        return [StatusWrite(found, patch, True)] if patch else []

    def _gang(self, view: View, gang: Gang, base: bool, now: datetime, told: list[GangSummary]) -> list[StatusWrite]:
        found = view.gangs.get(gang.name)
        if found is None or any(clique.name not in view.cliques for clique in gang.cliques):
            if found is not None:
                told.append(GangSummary(gang.name, found.status.phase or reasons.PENDING))
            return []
        wanted = self._gang_status(view, gang, found, base, now)
        shown = tuple(item for item in wanted["conditions"] if item["type"] in (reasons.SCHEDULED, reasons.READY))
        short = tuple(f"{item['type']}={item['status']}" for item in shown)
        told.append(GangSummary(gang.name, wanted["phase"], short, shown))
        patch = gang_patch(found, wanted)
        return [StatusWrite(found, patch, True)] if patch else []

    def _gang_status(self, view: View, gang: Gang, found: PodGang, base: bool, now: datetime) -> Json:
        members = view.members(gang)
        ending = any(
            is_true(group.status.conditions, reasons.GANG_TERMINATION_IN_PROGRESS) for group in view.groups.values()
        )
        trouble = self._summaries.trouble((view.pcs.namespace, view.pcs.name), view.layout.index)
        conditions = gangs.conditions(found, members, not gang.base or base, ending, trouble)
        return gang_status(found, members, conditions, gang_score(found, members, view.levels, self._world.nodes), now)


def summarize(view: View, told: tuple[GangSummary, ...]) -> Summary:
    """What the set needs to know of a replica."""
    alone = [clique for clique in view.layout.cliques if not clique.group]
    converged = [clique for clique in alone if updates.is_clique_converged(view, clique)]
    groups_done = [group for group in view.layout.groups if updates.is_group_converged(view, group)]
    available = all(
        clique.name in view.cliques and view.counts(clique).ready >= clique.min_available for clique in alone
    ) and all(
        group.name in view.groups and groups.count(view, group).available >= group.in_base
        for group in view.layout.groups
    )
    breached = any(cliques.is_breached(view.counts(clique), clique.min_available) for clique in view.layout.cliques)
    return Summary(
        generation=view.pcs.metadata.generation,
        available=available,
        updated=len(converged) == len(alone) and len(groups_done) == len(view.layout.groups),
        scheduled_pods=sum(view.counts(clique).scheduled for clique in view.layout.cliques),
        breached=breached,
        cliques=len(alone),
        cliques_updated=len(converged),
        groups=len(view.layout.groups),
        groups_updated=len(groups_done),
        gangs=told,
    )


def _look_again(view: View, now: datetime) -> After | None:
    """When an update's progress deadline passes, which nothing else would tell."""
    dues = [
        written.clique_deadline(view, c, view.cliques[c.name]) for c in view.layout.cliques if c.name in view.cliques
    ]
    dues += [written.group_deadline(view, g, view.groups[g.name]) for g in view.layout.groups if g.name in view.groups]
    ahead = [due for due in dues if due is not None and due > now]
    return After((min(ahead) - now).total_seconds()) if ahead else None
