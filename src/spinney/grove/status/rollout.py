"""Rolling updates across a set's replicas: when one starts, and which replica is updated next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from spinney.api.grove import PodClique, PodCliqueSet, SetUpdateProgress
from spinney.api.labels import POD_TEMPLATE_HASH
from spinney.api.meta import Json
from spinney.api.times import rfc3339
from spinney.grove.model import revisions
from spinney.grove.status.summary import Summary


def new_revision(pcs: PodCliqueSet, cliques: Iterable[PodClique], now: datetime) -> Json:
    """The status patch that starts an update; empty where the templates have not changed.

    A hash that another operator wrote is kept as long as its cliques have the content of today's templates.
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
    stored = pcs.status.update_progress
    if stored is None:
        return None
    next_index = None
    if not revisions.is_on_delete(pcs) and stored.update_ended_at is None:
        next_index = _replica_to_update(stored, summaries)
    ended = stored.update_ended_at or (now if next_index is None else None)
    return {
        "updateStartedAt": rfc3339(stored.update_started_at) if stored.update_started_at else None,
        "updateEndedAt": rfc3339(ended) if ended else None,
        "updatedPodCliquesCount": sum(summary.cliques_updated for summary in summaries),
        "totalPodCliquesCount": sum(summary.cliques for summary in summaries),
        "updatedPodCliqueScalingGroupsCount": sum(summary.groups_updated for summary in summaries),
        "totalPodCliqueScalingGroupsCount": sum(summary.groups for summary in summaries),
        "currentlyUpdating": [_updating(stored, next_index, now)] if next_index is not None else None,
    }


def _replica_to_update(stored: SetUpdateProgress, summaries: Sequence[Summary]) -> int | None:
    """The replica that is being updated, until it has converged; then the next.

    Replicas without scheduled pods go first, then those in breach: they have the least to lose.
    """
    for replica in stored.currently_updating:
        index = replica.replica_index
        if index < len(summaries) and not summaries[index].updated:
            return index
    waiting = [index for index, summary in enumerate(summaries) if not summary.updated]
    order = sorted(waiting, key=lambda at: (summaries[at].scheduled_pods > 0, not summaries[at].breached, at))
    return order[0] if order else None


def _updating(stored: SetUpdateProgress, index: int, now: datetime) -> Json:
    replicas = stored.currently_updating
    since = next((replica.update_started_at for replica in replicas if replica.replica_index == index), None)
    return {"replicaIndex": index, "updateStartedAt": rfc3339(since or now)}


def _all_current(pcs: PodCliqueSet, cliques: Iterable[PodClique]) -> bool:
    """Whether there are cliques, and each has the content of its template."""
    template = pcs.spec.template
    by_role = {clique.spec.role_name or clique.name: clique for clique in template.cliques}
    active = [clique for clique in cliques if clique.metadata.deletion_timestamp is None]
    return bool(active) and all(
        clique.spec.role_name in by_role
        and not _was_changed(clique)
        and revisions.is_current(clique, by_role[clique.spec.role_name], template.priority_class_name)
        for clique in active
    )


def _was_changed(clique: PodClique) -> bool:
    """Whether a clique follows today's template already, and its pods do not: the change came after the takeover."""
    revision = clique.metadata.labels.get(POD_TEMPLATE_HASH, "")
    return revisions.is_ours(revision) and clique.status.current_pod_template_hash not in ("", revision)
