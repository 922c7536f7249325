"""Plans the statuses of one set replica: pure, with a patch only where something differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from spinney.api import reasons
from spinney.api.conditions import is_true
from spinney.api.core import Node
from spinney.api.grove import PodClique, PodCliqueScalingGroup
from spinney.api.meta import Json, Object
from spinney.api.podgang import PodGang
from spinney.grove.model import gang_members
from spinney.grove.model.changes import PatchStatus
from spinney.grove.model.domains import requires_topology
from spinney.grove.model.layout import Clique, Gang, Group
from spinney.grove.model.view import View
from spinney.grove.status import cliques, gangs, groups, problems, progress
from spinney.grove.status.summary import GangSummary, Summary, summarize


@dataclass
class StatusPlan:
    """The patches of a replica's statuses, the warnings to record, and when to look again without a change."""

    summary: Summary
    patches: list[PatchStatus] = field(default_factory=list)
    # The object, the event's reason, and its message.
    warnings: list[tuple[Object, str, str]] = field(default_factory=list)
    look_again: datetime | None = None


def plan_status(view: View, last_error: str, nodes: Iterable[Node], now: datetime) -> StatusPlan:
    """The statuses of a replica's cliques, scaling groups and gangs; `last_error` is what its last reconcile met."""
    base_scheduled = gang_members.is_scheduled(view.members(view.layout.base_gang))
    watched = view.levels.keys or any(map(requires_topology, view.gangs.values()))
    by_name = {node.name: node for node in nodes} if watched else {}
    gang_plans = [
        _gang(view, gang, not gang.base or base_scheduled, last_error, nodes=by_name, now=now)
        for gang in view.layout.gangs
        if gang.name in view.gangs
    ]
    plan = StatusPlan(summarize(view, tuple(each.summary for each in gang_plans)))
    updating = {group.name for group in view.layout.groups if progress.is_group_updating(view, group)}
    for clique in view.layout.cliques:
        _add_clique(view, clique, now, plan, group_updating=clique.group in updating)
    for group in view.layout.groups:
        _add_group(view, group, now, plan)
    plan.patches += [each.patch for each in gang_plans if each.patch is not None]
    plan.warnings += [(each.stored, *warning) for each in gang_plans for warning in each.warnings]
    plan.look_again = _next_deadline(view, now)
    return plan


def _add_clique(view: View, clique: Clique, now: datetime, plan: StatusPlan, *, group_updating: bool) -> None:
    stored = view.cliques.get(clique.name)
    if stored is None:
        return
    patch = cliques.clique_patch(view, clique, stored, now, group_updating=group_updating)
    _warn_if_lost(stored, patch, "pods", plan)
    if patch:
        plan.patches.append(PatchStatus(stored, patch, guarded=False))


def _add_group(view: View, group: Group, now: datetime, plan: StatusPlan) -> None:
    stored = view.groups.get(group.name)
    if stored is None:
        return
    patch = groups.group_patch(view, group, stored, now)
    _warn_if_lost(stored, patch, "replicas", plan)
    if patch:
        plan.patches.append(PatchStatus(stored, patch, guarded=True))


def _warn_if_lost(stored: PodClique | PodCliqueScalingGroup, patch: Json, what: str, plan: StatusPlan) -> None:
    before = stored.status.scheduled_replicas
    if before > 0 and patch.get("scheduledReplicas") == 0:
        message = f"all {before} scheduled {what} were lost"
        plan.warnings.append((stored, reasons.ALL_SCHEDULED_REPLICAS_LOST, message))


@dataclass(frozen=True)
class _GangPlan:
    stored: PodGang
    summary: GangSummary
    patch: PatchStatus | None = None
    warnings: tuple[tuple[str, str], ...] = ()


def _gang(
    view: View, gang: Gang, base_scheduled: bool, last_error: str, *, nodes: Mapping[str, Node], now: datetime
) -> _GangPlan:
    stored = view.gangs[gang.name]
    if not view.has_cliques(gang):
        return _GangPlan(stored, GangSummary(gang.name, stored.status.phase or reasons.PENDING))
    members = view.members(gang)
    terminating = any(
        is_true(group.status.conditions, reasons.GANG_TERMINATION_IN_PROGRESS) for group in view.groups.values()
    )
    conditions = gangs.conditions(stored, members, base_scheduled, terminating, last_error, nodes=nodes)
    score = gangs.gang_score(stored, members, view.levels, nodes)
    wanted = gangs.gang_status(stored, members, conditions, score, now)
    shown = tuple(item for item in wanted["conditions"] if item["type"] in (reasons.SCHEDULED, reasons.READY))
    patch = gangs.status_patch(stored, wanted)
    summary = GangSummary(gang.name, wanted["phase"], shown)
    warnings = tuple(problems.news(stored, conditions))
    return _GangPlan(stored, summary, PatchStatus(stored, patch, guarded=True) if patch else None, warnings)


def _next_deadline(view: View, now: datetime) -> datetime | None:
    """When an update's progress deadline passes, which no change would tell."""
    deadlines = [
        cliques.clique_deadline(view, clique, view.cliques[clique.name])
        for clique in view.layout.cliques
        if clique.name in view.cliques
    ]
    deadlines += [
        groups.group_deadline(view, group, view.groups[group.name])
        for group in view.layout.groups
        if group.name in view.groups
    ]
    return min((due for due in deadlines if due is not None and due > now), default=None)
