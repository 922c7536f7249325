"""`updateProgress` of cliques and scaling groups, and when an update counts as stuck."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from spinney.api import duration, labels, reasons
from spinney.api.grove import (
    CliqueUpdateProgress,
    GroupUpdateProgress,
    PodClique,
    PodCliqueScalingGroup,
    RollingUpdate,
)
from spinney.api.meta import Condition, Json
from spinney.api.times import rfc3339
from spinney.grove.model import updates
from spinney.grove.model.group_counts import GroupCounts
from spinney.grove.model.layout import Clique, Group
from spinney.grove.model.view import View

_REPLACING = "ReplacingOutdated"
_UP_TO_DATE = "UpToDate"


def is_clique_updating(view: View, clique: Clique, stored: PodClique) -> bool:
    """Whether a standalone clique is being updated and has not converged; a new one only starts."""
    if not view.updating or clique.group or updates.is_clique_converged(view, clique):
        return False
    outdated = not view.is_current(clique) or bool(updates.outdated_pods(view, clique))
    return outdated or _has_begun(stored.status.update_progress) or _is_clique_behind(view, stored)


def is_group_updating(view: View, group: Group) -> bool:
    """Whether a scaling group is being updated and has not converged; a new one only starts."""
    stored = view.groups.get(group.name)
    if stored is None or not view.updating or updates.is_group_converged(view, group):
        return False
    members = view.layout.members(group)
    outdated = any(clique.name in view.cliques and not view.is_current(clique) for clique in members)
    outdated = outdated or any(updates.outdated_pods(view, clique) for clique in members)
    return outdated or _has_begun(stored.status.update_progress) or _is_group_behind(view, stored)


def is_clique_updated(view: View, clique: Clique, stored: PodClique) -> bool:
    """Whether a standalone clique was updated, also where the whole update fell between two looks at its status."""
    if stored.status.update_progress is not None:
        return True
    return not clique.group and _is_clique_behind(view, stored) and updates.is_clique_converged(view, clique)


def is_group_updated(view: View, group: Group, stored: PodCliqueScalingGroup) -> bool:
    """Whether a scaling group was updated, also where the whole update fell between two looks at its status."""
    if stored.status.update_progress is not None:
        return True
    return _is_group_behind(view, stored) and updates.is_group_converged(view, group)


def _has_begun(progress: CliqueUpdateProgress | GroupUpdateProgress | None) -> bool:
    return progress is not None and progress.update_ended_at is None


def _is_clique_behind(view: View, stored: PodClique) -> bool:
    """Whether a clique's status names an earlier revision than the clique has."""
    revision = stored.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
    return not view.on_delete and stored.status.current_pod_template_hash not in ("", revision)


def _is_group_behind(view: View, stored: PodCliqueScalingGroup) -> bool:
    """Whether a scaling group's status names an earlier revision than its set's."""
    revision = view.pcs.status.current_generation_hash
    return not view.on_delete and stored.status.current_pod_clique_set_generation_hash not in ("", revision)


def clique_progress(view: View, clique: Clique, stored: PodClique, now: datetime) -> Json | None:
    """Begun when the clique's update begins, ended when it has converged; None if it was never updated."""
    before = stored.status.update_progress
    generation = view.pcs.status.current_generation_hash
    revision = stored.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
    if not is_clique_updating(view, clique, stored):
        if not is_clique_updated(view, clique, stored):
            return None
        before = before or CliqueUpdateProgress(update_started_at=_started(view))
        # A converged clique has the newest change, with or without an update of its own.
        converged = updates.is_clique_converged(view, clique)
        return {
            "updateStartedAt": _timestamp(before.update_started_at or now),
            "updateEndedAt": _timestamp(before.update_ended_at or now),
            "podCliqueSetGenerationHash": generation if converged else before.pod_clique_set_generation_hash,
            "podTemplateHash": revision if converged else before.pod_template_hash,
            "readyPodsSelectedToUpdate": None,
        }
    same = before is not None and before.pod_template_hash == revision and before.update_ended_at is None
    outdated = sorted(pod.name for pod in updates.outdated_pods(view, clique))
    return {
        "updateStartedAt": _timestamp((before.update_started_at if before is not None and same else None) or now),
        "updateEndedAt": None,
        "podCliqueSetGenerationHash": generation,
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
        if not is_group_updated(view, group, stored):
            return None
        before = before or GroupUpdateProgress(update_started_at=_started(view))
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


def conditions(updating: bool, stuck: bool, updated: bool) -> list[Condition]:
    """The UpdateInProgress condition; absent on what was never updated."""
    if updating and stuck:
        message = "no further pod was replaced within progressDeadline; the update goes on when it can"
        reason = reasons.PROGRESS_DEADLINE_EXCEEDED
        return [Condition(type=reasons.UPDATE_IN_PROGRESS, status="False", reason=reason, message=message)]
    if updating:
        message = "outdated pods are being replaced"
        return [Condition(type=reasons.UPDATE_IN_PROGRESS, status="True", reason=_REPLACING, message=message)]
    if not updated:
        return []
    return [Condition(type=reasons.UPDATE_IN_PROGRESS, status="False", reason=_UP_TO_DATE)]


def _started(view: View) -> datetime | None:
    """When the set's update began."""
    update = view.pcs.status.update_progress
    return update.update_started_at if update is not None else None


def _timestamp(moment: datetime | None) -> str | None:
    return rfc3339(moment) if moment is not None else None
