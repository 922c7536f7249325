"""`updateProgress` of cliques and scaling groups, and when an update counts as stuck."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from spinney.api import duration, labels, reasons
from spinney.api.conditions import find
from spinney.api.grove import PodClique, PodCliqueScalingGroup, RollingUpdate
from spinney.api.meta import Condition, Json
from spinney.api.times import rfc3339
from spinney.grove.model import updates
from spinney.grove.model.group_counts import GroupCounts
from spinney.grove.model.layout import Clique, Group
from spinney.grove.model.view import View

_REPLACING = "ReplacingOutdated"
_UP_TO_DATE = "UpToDate"


def is_clique_updating(view: View, clique: Clique) -> bool:
    """Whether a standalone clique is being updated and has not converged."""
    return view.updating and not clique.group and not updates.is_clique_converged(view, clique)


def is_group_updating(view: View, group: Group) -> bool:
    """Whether a scaling group is being updated and has not converged."""
    return view.updating and not updates.is_group_converged(view, group)


def clique_progress(view: View, clique: Clique, stored: PodClique, now: datetime) -> Json | None:
    """Begun when the clique's update begins, ended when it has converged; None if it was never updated."""
    before = stored.status.update_progress
    revision = stored.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
    if not is_clique_updating(view, clique):
        if before is None:
            return None
        generation, template = before.pod_clique_set_generation_hash, before.pod_template_hash
        if template != revision and updates.is_clique_converged(view, clique):
            # A second change during an update may converge without an update of its own.
            generation, template = view.pcs.status.current_generation_hash, revision
        return {
            "updateStartedAt": _timestamp(before.update_started_at),
            "updateEndedAt": _timestamp(before.update_ended_at or now),
            "podCliqueSetGenerationHash": generation,
            "podTemplateHash": template,
            "readyPodsSelectedToUpdate": None,
        }
    same = before is not None and before.pod_template_hash == revision and before.update_ended_at is None
    outdated = sorted(pod.name for pod in updates.outdated_pods(view, clique))
    return {
        "updateStartedAt": _timestamp((before.update_started_at if before is not None and same else None) or now),
        "updateEndedAt": None,
        "podCliqueSetGenerationHash": view.pcs.status.current_generation_hash,
        "podTemplateHash": revision,
        "readyPodsSelectedToUpdate": {"current": outdated[0]} if outdated else None,
    }


def group_progress(
    view: View, group: Group, stored: PodCliqueScalingGroup, counts: GroupCounts, now: datetime
) -> Json | None:
    """Begun when the group's update begins, ended when it has converged; None if it was never updated."""
    before = stored.status.update_progress
    amounts = {"updatedPodCliquesCount": counts.cliques_updated, "totalPodCliquesCount": counts.cliques}
    if not is_group_updating(view, group):
        if before is None:
            return None
        # A converged group has the newest change, with or without an update of its own.
        converged = updates.is_group_converged(view, group)
        generation = view.pcs.status.current_generation_hash if converged else before.pod_clique_set_generation_hash
        return {
            "updateStartedAt": _timestamp(before.update_started_at or now),
            "updateEndedAt": _timestamp(before.update_ended_at or now),
            "podCliqueSetGenerationHash": generation,
            "readyReplicaIndicesSelectedToUpdate": None,
            **amounts,
        }
    revision = view.pcs.status.current_generation_hash
    same = before is not None and before.pod_clique_set_generation_hash == revision and before.update_ended_at is None
    replicas = view.replicas_of(group)
    old = [index for index, cliques in enumerate(replicas) if not updates.is_replica_current(view, cliques)]
    completed = [index for index in range(len(replicas)) if index not in old]
    return {
        "updateStartedAt": _timestamp((before.update_started_at if before is not None and same else None) or now),
        "updateEndedAt": None,
        "podCliqueSetGenerationHash": revision,
        "readyReplicaIndicesSelectedToUpdate": {"current": old[0], "completed": completed} if old else None,
        **amounts,
    }


def deadline(rollout: RollingUpdate | None, started: datetime | None) -> datetime | None:
    """When an update that began then counts as stuck."""
    if rollout is None or not rollout.progress_deadline or started is None:
        return None
    return started + timedelta(seconds=duration.seconds(rollout.progress_deadline))


def has_passed(due: datetime | None, now: datetime) -> bool:
    """Whether there is a deadline and it has passed."""
    return due is not None and due <= now


def last_step(view: View, cliques: Sequence[Clique], started: datetime | None) -> datetime | None:
    """When the update last progressed: it began, or a pod of the new revision was created."""
    moments = [started] if started is not None else []
    for clique in cliques:
        old = {pod.name for pod in updates.outdated_pods(view, clique)}
        for pod in view.active_pods(clique):
            if pod.name not in old and pod.metadata.creation_timestamp is not None:
                moments.append(pod.metadata.creation_timestamp)
    return max(moments, default=None)


def conditions(existing: Sequence[Condition], updating: bool, stuck: bool) -> list[Condition]:
    """The UpdateInProgress condition; absent on what was never updated."""
    if updating and stuck:
        message = "no further pod was replaced within progressDeadline; the update goes on when it can"
        reason = reasons.PROGRESS_DEADLINE_EXCEEDED
        return [Condition(type=reasons.UPDATE_IN_PROGRESS, status="False", reason=reason, message=message)]
    if updating:
        message = "outdated pods are being replaced"
        return [Condition(type=reasons.UPDATE_IN_PROGRESS, status="True", reason=_REPLACING, message=message)]
    if find(existing, reasons.UPDATE_IN_PROGRESS) is None:
        return []
    return [Condition(type=reasons.UPDATE_IN_PROGRESS, status="False", reason=_UP_TO_DATE)]


def _timestamp(moment: datetime | None) -> str | None:
    return rfc3339(moment) if moment is not None else None
