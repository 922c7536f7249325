"""Counts of a scaling group's replicas by state."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.grove.model import updates
from spinney.grove.model.layout import Clique, Group
from spinney.grove.model.view import View


@dataclass(frozen=True)
class GroupCounts:
    """The replicas of one scaling group, by state."""

    replicas: int
    scheduled: int
    available: int
    updated: int
    healthy: int
    cliques: int
    cliques_updated: int


def count_replicas(view: View, group: Group) -> GroupCounts:
    """Count a group's replicas; a replica is in a state only if all its cliques are."""
    replicas = view.replicas_of(group)
    available = [cliques for cliques in replicas if updates.is_replica_available(view, cliques)]
    members = [clique for cliques in replicas for clique in cliques]
    return GroupCounts(
        replicas=group.replicas,
        scheduled=sum(all(_is_scheduled(view, clique) for clique in cliques) for cliques in replicas),
        available=len(available),
        updated=sum(_is_updated(view, cliques) for cliques in available),
        healthy=sum(is_replica_healthy(view, cliques) for cliques in replicas),
        cliques=len(members),
        cliques_updated=sum(updates.is_clique_converged(view, clique) for clique in members),
    )


def is_replica_healthy(view: View, cliques: list[Clique]) -> bool:
    """Whether every clique of a scaling-group replica exists and has its minimum scheduled and healthy."""
    return all(
        clique.name in view.cliques and not view.counts(clique).is_breached(clique.min_available) for clique in cliques
    )


def _is_scheduled(view: View, clique: Clique) -> bool:
    return clique.name in view.cliques and view.counts(clique).scheduled >= clique.min_available


def _is_updated(view: View, cliques: list[Clique]) -> bool:
    return all(view.is_current(clique) and not updates.outdated_pods(view, clique) for clique in cliques)
