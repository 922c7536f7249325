"""Gang termination: what stays below its minimum for terminationDelay is replaced as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from spinney.api import duration, labels, reasons
from spinney.api.conditions import as_json, find, is_true, merged, true_since
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Condition, Json
from spinney.grove.model import revisions
from spinney.grove.model.group_counts import is_replica_healthy
from spinney.grove.model.layout import Clique, Group
from spinney.grove.model.view import View

_DEFAULT_DELAY = timedelta(hours=4)
# Upstream stamps a condition when it first writes it, a moment after the object was created.
_UPSTREAM_SLACK = timedelta(seconds=5)


@dataclass(frozen=True)
class Termination:
    """Which cliques are replaced now, and when to look again."""

    cliques: tuple[str, ...] = ()
    # Whether the whole replica is replaced, and not only replicas of scaling groups.
    whole: bool = False
    look_again: datetime | None = None


def plan_termination(view: View, now: datetime) -> Termination:
    """Which cliques of a replica have been below their minimum for too long."""
    if unfinished := _unfinished(view):
        return Termination(unfinished, whole=True)
    delay = _delay(view.pcs)
    whole_due: list[datetime] = []
    replaced: list[str] = []
    later: list[datetime] = []
    for clique in view.layout.cliques:
        if not clique.group:
            since = _clique_breach(view, clique)
            whole_due += [since + delay] if since else []
    for group in view.layout.groups:
        expired, due, deferred = _group_breaches(view, group, delay, now)
        replaced += expired
        later += due
        whole_due += deferred
    if whole_due and min(whole_due) <= now:
        return Termination(tuple(view.cliques), whole=True)
    return Termination(tuple(replaced), look_again=min(later + whole_due, default=None))


def _unfinished(view: View) -> tuple[str, ...]:
    """Cliques that a termination of the whole replica left over, since the operator ended in between."""
    kind = reasons.GANG_TERMINATION_IN_PROGRESS
    marks = (true_since(group.status.conditions, kind) for group in view.groups.values())
    began = max((mark for mark in marks if mark is not None), default=None)
    if began is None:
        return ()
    created = {name: clique.metadata.creation_timestamp for name, clique in view.cliques.items()}
    return tuple(name for name, moment in created.items() if moment is not None and moment < began)


def _delay(pcs: PodCliqueSet) -> timedelta:
    text = pcs.spec.template.termination_delay
    return timedelta(seconds=duration.seconds(text)) if text else _DEFAULT_DELAY


def _group_breaches(
    view: View, group: Group, delay: timedelta, now: datetime
) -> tuple[list[str], list[datetime], list[datetime]]:
    """Cliques to replace, when to look again, and when the whole replica is due."""
    replicas = view.replicas_of(group)
    breached = {
        index: since for index, cliques in enumerate(replicas) if (since := _first_breach(view, cliques)) is not None
    }
    healthy = sum(is_replica_healthy(view, cliques) for cliques in replicas)
    # Replicas that never had their minimum are not in breach, but cannot stand in for lost ones either.
    if breached and healthy < group.in_base:
        since = _group_breach(view, group)
        return [], [], [since + delay] if since else []
    expired = {index for index, since in breached.items() if since + delay <= now}
    replaced = [clique.name for clique in view.layout.members(group) if clique.group_index in expired]
    due = [since + delay for index, since in breached.items() if index not in expired]
    return [name for name in replaced if name in view.cliques], due, []


def _first_breach(view: View, cliques: Iterable[Clique]) -> datetime | None:
    breaches = (_clique_breach(view, clique) for clique in cliques)
    return min((since for since in breaches if since is not None), default=None)


def _clique_breach(view: View, clique: Clique) -> datetime | None:
    """Since when a clique lacks its minimum; None where it does not, or never had it.

    Its pods tell whether; the stored condition only tells since when.
    """
    stored = view.cliques.get(clique.name)
    if stored is None or not was_scheduled(stored):
        return None
    if not view.counts(clique).is_breached(clique.min_available):
        return None
    return true_since(stored.status.conditions, reasons.MIN_AVAILABLE_BREACHED)


def _group_breach(view: View, group: Group) -> datetime | None:
    stored = view.groups.get(group.name)
    if stored is None or not was_healthy(stored):
        return None
    if is_true(stored.status.conditions, reasons.GANG_TERMINATION_IN_PROGRESS):
        return None
    return true_since(stored.status.conditions, reasons.MIN_AVAILABLE_BREACHED)


def was_scheduled(stored: PodClique) -> bool:
    """Whether a clique ever had its minimum scheduled: it has now, or the condition changed since its creation."""
    return _was(stored, reasons.CLIQUE_SCHEDULED, "True")


def was_healthy(stored: PodCliqueScalingGroup) -> bool:
    """Whether a scaling group ever had its minimum: it has now, or the condition changed since its creation."""
    return _was(stored, reasons.MIN_AVAILABLE_BREACHED, "False")


def _was(stored: PodClique | PodCliqueScalingGroup, kind: str, status: str) -> bool:
    condition = find(stored.status.conditions, kind)
    if condition is None:
        return False
    return condition.status == status or _changed(stored, condition.last_transition_time)


def _changed(stored: PodClique | PodCliqueScalingGroup, moment: datetime | None) -> bool:
    created = stored.metadata.creation_timestamp
    if created is None or moment is None:
        return False
    revision = stored.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
    adopted = bool(revision) and not revisions.is_ours(revision)
    return moment > created + (_UPSTREAM_SLACK if adopted else timedelta())


def marked(stored: PodCliqueScalingGroup, now: datetime) -> list[Json] | None:
    """The group's conditions with GangTerminationInProgress; None where it is set."""
    if is_true(stored.status.conditions, reasons.GANG_TERMINATION_IN_PROGRESS):
        return None
    mark = Condition(
        type=reasons.GANG_TERMINATION_IN_PROGRESS,
        status="True",
        reason=reasons.GANG_TERMINATION_ACTIVE,
        message="the set replica was below its minimum for terminationDelay and is replaced",
    )
    return as_json(merged(stored.status.conditions, [mark], now))
