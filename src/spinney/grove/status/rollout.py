"""Updates across a set's replicas: what a new revision starts, and whose turn it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.meta import Json
from spinney.api.times import rfc3339
from spinney.grove.model import revisions
from spinney.grove.status.summary import Summary


def new_revision(pcs: PodCliqueSet, cliques: Iterable[PodClique], now: datetime) -> Json:
    """The status patch that starts an update; empty where the templates have not changed.

    A hash that another operator wrote is kept as long as its cliques have the content of the templates of now.
    """
    wanted = revisions.generation_hash(pcs)
    stored = pcs.status.current_generation_hash
    if stored == wanted:
        return {}
    if not stored:
        return {"currentGenerationHash": wanted}
    if not revisions.is_ours(stored) and _all_current(pcs, cliques):
        return {}
    progress: Json = {
        "updateStartedAt": rfc3339(now),
        "updateEndedAt": rfc3339(now) if revisions.is_on_delete(pcs) else None,
        "currentlyUpdating": None,
    }
    return {"currentGenerationHash": wanted, "updatedReplicas": 0, "updateProgress": progress}


def progress(pcs: PodCliqueSet, summaries: Sequence[Summary], now: datetime) -> Json | None:
    """`updateProgress` as it should be now; None for a set that was never updated."""
    known = pcs.status.update_progress
    if known is None:
        return None
    turn = None if revisions.is_on_delete(pcs) or known.update_ended_at is not None else _whose_turn(pcs, summaries)
    ended = known.update_ended_at or (now if turn is None else None)
    return {
        "updateStartedAt": rfc3339(known.update_started_at) if known.update_started_at else None,
        "updateEndedAt": rfc3339(ended) if ended else None,
        "updatedPodCliquesCount": sum(summary.cliques_updated for summary in summaries),
        "totalPodCliquesCount": sum(summary.cliques for summary in summaries),
        "updatedPodCliqueScalingGroupsCount": sum(summary.groups_updated for summary in summaries),
        "totalPodCliqueScalingGroupsCount": sum(summary.groups for summary in summaries),
        "currentlyUpdating": [_turn(pcs, turn, now)] if turn is not None else None,
    }


def _whose_turn(pcs: PodCliqueSet, summaries: Sequence[Summary]) -> int | None:
    """The replica that is updated now, until it has converged; then the next.

    Replicas without scheduled pods go first, then those in breach: they have the least to lose.
    """
    known = pcs.status.update_progress
    for replica in known.currently_updating if known is not None else ():
        index = replica.replica_index
        if index < len(summaries) and not summaries[index].updated:
            return index
    waiting = [index for index, summary in enumerate(summaries) if not summary.updated]
    order = sorted(waiting, key=lambda at: (summaries[at].scheduled_pods > 0, not summaries[at].breached, at))
    return order[0] if order else None


def _turn(pcs: PodCliqueSet, index: int, now: datetime) -> Json:
    known = pcs.status.update_progress
    replicas = known.currently_updating if known is not None else ()
    since = next((replica.update_started_at for replica in replicas if replica.replica_index == index), None)
    return {"replicaIndex": index, "updateStartedAt": rfc3339(since or now)}


def _all_current(pcs: PodCliqueSet, cliques: Iterable[PodClique]) -> bool:
    """Whether there are cliques, and each has the content of the template it was made from."""
    template = pcs.spec.template
    by_role = {clique.spec.role_name or clique.name: clique for clique in template.cliques}
    found = [clique for clique in cliques if clique.metadata.deletion_timestamp is None]
    return bool(found) and all(
        clique.spec.role_name in by_role
        and revisions.is_current(clique, by_role[clique.spec.role_name], template.priority_class_name)
        for clique in found
    )
