"""What a set's status needs to know of each replica: kept in memory, so that one change never reads all the others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from spinney.api.meta import Json, Key
from spinney.api.times import rfc3339
from spinney.grove.model import updates
from spinney.grove.model.group_counts import count_replicas
from spinney.grove.model.view import View

# A status is read by people: the first few say enough.
_MOST_ERRORS = 10
# Stands for the set in the place of a replica's index.
SET_ITSELF = -1


@dataclass(frozen=True)
class GangSummary:
    """One gang of a replica."""

    name: str
    phase: str
    conditions: tuple[str, ...] = ()
    detail: tuple[Json, ...] = ()

    def __hash__(self) -> int:
        return hash((self.name, self.phase, self.conditions))


@dataclass(frozen=True)
class Summary:
    """One replica of a set, as it looked for one generation of the set's spec."""

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
    alone = [clique for clique in view.layout.cliques if not clique.group]
    converged = [clique for clique in alone if updates.is_clique_converged(view, clique)]
    groups_done = [group for group in view.layout.groups if updates.is_group_converged(view, group)]
    available = all(
        clique.name in view.cliques and view.counts(clique).ready >= clique.min_available for clique in alone
    ) and all(
        group.name in view.groups and count_replicas(view, group).available >= group.in_base
        for group in view.layout.groups
    )
    breached = any(view.counts(clique).is_breached(clique.min_available) for clique in view.layout.cliques)
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
        gangs=gangs,
    )


class Summaries:
    """The last summary of every replica."""

    def __init__(self) -> None:
        self._by_set: dict[Key, dict[int, Summary]] = {}
        self._errors: dict[Key, dict[int, Json]] = {}

    def note_error(self, pcs: Key, index: int, error: Exception | None, now: datetime) -> bool:
        """Keep what went wrong last with a replica, or the set itself; None: nothing did. Says whether it is news."""
        known = self._errors.setdefault(pcs, {})
        if error is None:
            return known.pop(index, None) is not None
        if index in known and known[index]["description"] == str(error):
            return False
        code = f"ERR_{type(error).__name__.upper()}"
        known[index] = {"code": code, "description": str(error), "observedAt": rfc3339(now)}
        return True

    def errors_of(self, pcs: Key, replicas: int) -> list[Json]:
        """What went wrong last with each replica that has not recovered since."""
        known = self._errors.get(pcs, {})
        return [known[index] for index in sorted(known) if index < replicas][:_MOST_ERRORS]

    def last_error(self, pcs: Key, index: int) -> str:
        """What went wrong last with a replica; empty where it has recovered."""
        known = self._errors.get(pcs, {}).get(index)
        return str(known["description"]) if known is not None else ""

    def put(self, pcs: Key, index: int, summary: Summary) -> bool:
        """Keep a replica's summary; says whether it is news."""
        known = self._by_set.setdefault(pcs, {})
        if known.get(index) == summary:
            return False
        known[index] = summary
        return True

    def of(self, pcs: Key, replicas: int, generation: int) -> list[Summary] | None:
        """The summaries of all replicas; None while some are not in yet, or speak of an older spec."""
        known = self._by_set.get(pcs, {})
        found = [known[index] for index in range(replicas) if index in known]
        if len(found) < replicas or any(summary.generation != generation for summary in found):
            return None
        return found

    def drop(self, pcs: Key, replicas: int = 0) -> None:
        """Forget replicas beyond a count, or the whole set."""
        if replicas == 0:
            self._errors.pop(pcs, None)
        known = self._by_set.get(pcs)
        if known is None:
            return
        for index in [index for index in known if index >= replicas]:
            del known[index]
        if not known:
            del self._by_set[pcs]
