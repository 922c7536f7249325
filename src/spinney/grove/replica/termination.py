"""Gang termination: what lost its minimum, and kept missing it for terminationDelay, is replaced as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from spinney.api import duration, labels, reasons
from spinney.api.conditions import as_json, find, is_true, merged
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
class Verdict:
    """Which cliques are replaced now, and when to look again."""

    cliques: tuple[str, ...] = ()
    # The whole replica lost what it cannot do without, not only one replica of a scaling group.
    whole: bool = False
    wake: datetime | None = None


def judge(view: View, now: datetime) -> Verdict:
    """What the breaches of one set replica come to."""
    if unfinished := _unfinished(view):
        return Verdict(unfinished, whole=True)
    delay = delay_of(view.pcs)
    whole: list[datetime] = []
    replaced: list[str] = []
    wakes: list[datetime] = []
    for clique in view.layout.cliques:
        if not clique.group:
            since = _clique_breach(view, clique)
            whole += [since + delay] if since else []
    for group in view.layout.groups:
        expired, due, deferred = _group_breaches(view, group, delay, now)
        replaced += expired
        wakes += due
        whole += deferred
    if whole and min(whole) <= now:
        return Verdict(tuple(view.cliques), whole=True)
    wakes += whole
    return Verdict(tuple(replaced), wake=min(wakes, default=None))


def _unfinished(view: View) -> tuple[str, ...]:
    """Cliques that are older than the answer to a breach that should have taken all: the operator ended in between."""
    notes = [find(group.status.conditions, reasons.GANG_TERMINATION_IN_PROGRESS) for group in view.groups.values()]
    moments = [note.last_transition_time for note in notes if note is not None and note.status == "True"]
    answered = max((moment for moment in moments if moment is not None), default=None)
    if answered is None:
        return ()
    created = {name: found.metadata.creation_timestamp for name, found in view.cliques.items()}
    return tuple(name for name, moment in created.items() if moment is not None and moment < answered)


def delay_of(pcs: PodCliqueSet) -> timedelta:
    """How long a breach may last."""
    text = pcs.spec.template.termination_delay
    return timedelta(seconds=duration.seconds(text)) if text else _DEFAULT_DELAY


def breached_replicas(view: View, group: Group) -> dict[int, datetime]:
    """The replicas of a scaling group that are in breach, and since when."""
    found: dict[int, datetime] = {}
    for index, cliques in enumerate(view.replicas_of(group)):
        since = [moment for clique in cliques if (moment := _clique_breach(view, clique)) is not None]
        if since:
            found[index] = min(since)
    return found


def _group_breaches(
    view: View, group: Group, delay: timedelta, now: datetime
) -> tuple[list[str], list[datetime], list[datetime]]:
    """Cliques to replace, moments to look again, and moments at which the whole replica goes."""
    breached = breached_replicas(view, group)
    well = sum(is_replica_healthy(view, cliques) for cliques in view.replicas_of(group))
    # Replicas that were never placed break no promise, but they cannot stand in for lost ones either.
    if breached and well < group.in_base:
        since = _group_breach(view, group)
        return [], [], [since + delay] if since else []
    expired = {index for index, since in breached.items() if since + delay <= now}
    replaced = [clique.name for clique in view.layout.members(group) if clique.group_index in expired]
    due = [since + delay for index, since in breached.items() if index not in expired]
    return [name for name in replaced if name in view.cliques], due, []


def _clique_breach(view: View, clique: Clique) -> datetime | None:
    """Since when a clique misses its minimum; None where it does not, or never had it.

    The breach is seen on the pods themselves; the stored condition only tells since when.
    """
    found = view.cliques.get(clique.name)
    if found is None or not was_scheduled(found):
        return None
    if not view.counts(clique).is_breached(clique.min_available):
        return None
    condition = find(found.status.conditions, reasons.MIN_AVAILABLE_BREACHED)
    if condition is None or condition.status != "True":
        return None
    return condition.last_transition_time


def _group_breach(view: View, group: Group) -> datetime | None:
    found = view.groups.get(group.name)
    if found is None or not was_healthy(found):
        return None
    if is_true(found.status.conditions, reasons.GANG_TERMINATION_IN_PROGRESS):
        return None
    condition = find(found.status.conditions, reasons.MIN_AVAILABLE_BREACHED)
    if condition is None or condition.status != "True":
        return None
    return condition.last_transition_time


def was_scheduled(found: PodClique) -> bool:
    """Whether a clique ever had its minimum on nodes: it has now, or the condition has turned since its creation."""
    condition = find(found.status.conditions, reasons.CLIQUE_SCHEDULED)
    if condition is None:
        return False
    return condition.status == "True" or _turned(found, condition.last_transition_time)


def was_healthy(found: PodCliqueScalingGroup) -> bool:
    """Whether a scaling group ever had its minimum: it has now, or the condition has turned since its creation."""
    condition = find(found.status.conditions, reasons.MIN_AVAILABLE_BREACHED)
    if condition is None:
        return False
    return condition.status == "False" or _turned(found, condition.last_transition_time)


def _turned(found: PodClique | PodCliqueScalingGroup, moment: datetime | None) -> bool:
    created = found.metadata.creation_timestamp
    if created is None or moment is None:
        return False
    revision = found.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
    adopted = bool(revision) and not revisions.is_ours(revision)
    return moment > created + (_UPSTREAM_SLACK if adopted else timedelta())


def marked(found: PodCliqueScalingGroup, now: datetime) -> list[Json] | None:
    """The group's conditions with the note that its breach was answered; None where it is there."""
    if is_true(found.status.conditions, reasons.GANG_TERMINATION_IN_PROGRESS):
        return None
    note = Condition(
        type=reasons.GANG_TERMINATION_IN_PROGRESS,
        status="True",
        reason=reasons.GANG_TERMINATION_ACTIVE,
        message="the set replica was below its minimum for terminationDelay and is replaced",
    )
    return as_json(merged(found.status.conditions, [note], now))
