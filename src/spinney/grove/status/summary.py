"""Summaries of replicas for their set's status, kept in memory: a change of one replica reads no other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from spinney.api.meta import Json, Key
from spinney.api.times import rfc3339
from spinney.grove.model import updates
from spinney.grove.model.group_counts import count_replicas
from spinney.grove.model.view import View

# People read a status: the first few errors are enough.
_MOST_ERRORS = 10
# In place of a replica's index: the set itself.
SET_ITSELF = -1


@dataclass(frozen=True)
class GangSummary:
    """One gang of a replica."""

    name: str
    phase: str
    conditions: tuple[Json, ...] = ()


@dataclass(frozen=True)
class Summary:
    """One replica of a set, observed for one generation of the set's spec."""

    generation: int
    available: bool
    updated: bool
    scheduled_pods: int
    breached: bool
    cliques: int
    cliques_updated: int
    groups: int
    groups_updated: int
    gangs: tuple[GangSummary, ...] = ()


def summarize(view: View, gangs: tuple[GangSummary, ...]) -> Summary:
    """Summarize a replica for the status of its set."""
    standalone = [clique for clique in view.layout.cliques if not clique.group]
    converged = [clique for clique in standalone if updates.is_clique_converged(view, clique)]
    groups_converged = [group for group in view.layout.groups if updates.is_group_converged(view, group)]
    available = all(
        clique.name in view.cliques and view.counts(clique).ready >= clique.min_available for clique in standalone
    ) and all(
        group.name in view.groups and count_replicas(view, group).available >= group.in_base
        for group in view.layout.groups
    )
    breached = any(view.counts(clique).is_breached(clique.min_available) for clique in view.layout.cliques)
    return Summary(
        generation=view.pcs.metadata.generation,
        available=available,
        updated=len(converged) == len(standalone) and len(groups_converged) == len(view.layout.groups),
        scheduled_pods=sum(view.counts(clique).scheduled for clique in view.layout.cliques),
        breached=breached,
        cliques=len(standalone),
        cliques_updated=len(converged),
        groups=len(view.layout.groups),
        groups_updated=len(groups_converged),
        gangs=gangs,
    )


class Summaries:
    """The last summary and the last error of every replica."""

    def __init__(self) -> None:
        self._by_set: dict[Key, dict[int, Summary]] = {}
        self._errors: dict[Key, dict[int, Json]] = {}

    def note_error(self, pcs: Key, index: int, error: Exception | None, now: datetime) -> bool:
        """Keep the last error of a replica, or of the set itself; None clears it. Returns whether it changed."""
        errors = self._errors.setdefault(pcs, {})
        if error is None:
            return errors.pop(index, None) is not None
        if index in errors and errors[index]["description"] == str(error):
            return False
        code = f"ERR_{type(error).__name__.upper()}"
        errors[index] = {"code": code, "description": str(error), "observedAt": rfc3339(now)}
        return True

    def errors_of(self, pcs: Key, replicas: int) -> list[Json]:
        """The last error of each replica that has not recovered since."""
        errors = self._errors.get(pcs, {})
        return [errors[index] for index in sorted(errors) if index < replicas][:_MOST_ERRORS]

    def last_error(self, pcs: Key, index: int) -> str:
        """The last error of a replica; empty where it has recovered."""
        error = self._errors.get(pcs, {}).get(index)
        return str(error["description"]) if error is not None else ""

    def put(self, pcs: Key, index: int, summary: Summary) -> bool:
        """Keep a replica's summary; returns whether it changed."""
        summaries = self._by_set.setdefault(pcs, {})
        if summaries.get(index) == summary:
            return False
        summaries[index] = summary
        return True

    def of(self, pcs: Key, replicas: int, generation: int) -> list[Summary] | None:
        """The summaries of all replicas; None while some are missing, or are of an older spec."""
        by_index = self._by_set.get(pcs, {})
        summaries = [by_index[index] for index in range(replicas) if index in by_index]
        if len(summaries) < replicas or any(summary.generation != generation for summary in summaries):
            return None
        return summaries

    def drop(self, pcs: Key, replicas: int = 0) -> None:
        """Forget replicas beyond a count, or the whole set."""
        if replicas == 0:
            self._errors.pop(pcs, None)
        kept = {index: summary for index, summary in self._by_set.pop(pcs, {}).items() if index < replicas}
        if kept:
            self._by_set[pcs] = kept
