"""A PodCliqueScalingGroup's status: how many of its replicas are placed, serve and are up to date."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.api import reasons
from spinney.api.meta import Condition
from spinney.grove.model import updates
from spinney.grove.model.layout import Clique, Group
from spinney.grove.model.view import View
from spinney.grove.status.cliques import is_breached


@dataclass(frozen=True)
class GroupCounts:
    """The replicas of one scaling group, by what they do."""

    replicas: int
    scheduled: int
    available: int
    updated: int
    unbreached: int
    cliques: int
    cliques_updated: int


def count(view: View, group: Group) -> GroupCounts:
    """Counts over a group's replicas; one counts only if all its cliques do."""
    replicas = view.replicas_of(group)
    available = [cliques for cliques in replicas if updates.is_replica_available(view, cliques)]
    members = [clique for cliques in replicas for clique in cliques]
    return GroupCounts(
        replicas=group.replicas,
        scheduled=sum(all(_is_scheduled(view, clique) for clique in cliques) for cliques in replicas),
        available=len(available),
        updated=sum(_is_updated(view, cliques) for cliques in available),
        unbreached=sum(all(_is_well(view, clique) for clique in cliques) for cliques in replicas),
        cliques=len(members),
        cliques_updated=sum(updates.is_clique_converged(view, clique) for clique in members),
    )


def breach_condition(counts: GroupCounts, least: int, updating: bool) -> Condition:
    """Whether too few replicas are whole and well; while the group is updated nobody can say."""
    message = f"{counts.unbreached} of at least {least} replicas are well"
    if updating:
        status, reason, message = "Unknown", reasons.UPDATE_IN_PROGRESS, "the group's replicas are being replaced"
    elif counts.unbreached < least:
        status, reason = "True", reasons.INSUFFICIENT_AVAILABLE_REPLICAS
    else:
        status, reason = "False", reasons.SUFFICIENT_AVAILABLE_REPLICAS
    return Condition(type=reasons.MIN_AVAILABLE_BREACHED, status=status, reason=reason, message=message)


def _is_scheduled(view: View, clique: Clique) -> bool:
    return clique.name in view.cliques and view.counts(clique).scheduled >= clique.min_available


def _is_well(view: View, clique: Clique) -> bool:
    return clique.name in view.cliques and not is_breached(view.counts(clique), clique.min_available)


def _is_updated(view: View, cliques: list[Clique]) -> bool:
    return all(view.is_current(clique) and not updates.outdated_pods(view, clique) for clique in cliques)
