"""A PodCliqueScalingGroup's status: counts of its replicas, its conditions, and the progress of its update."""

from __future__ import annotations

from datetime import datetime

from spinney.api import labels, reasons
from spinney.api.conditions import as_json, merged
from spinney.api.grove import PodCliqueScalingGroup
from spinney.api.meta import Condition, Json
from spinney.grove.model import revisions
from spinney.grove.model.group_counts import GroupCounts, count_replicas
from spinney.grove.model.layout import Group
from spinney.grove.model.metadata import selector
from spinney.grove.model.updates import is_group_converged
from spinney.grove.model.view import View
from spinney.grove.status import progress
from spinney.grove.status.patches import difference


def group_patch(view: View, group: Group, stored: PodCliqueScalingGroup, now: datetime) -> Json:
    """What a scaling group's status must change."""
    counts = count_replicas(view, group)
    updating = progress.is_group_updating(view, group)
    breach = _breach_condition(counts, group.in_base, updating)
    existing = stored.status.conditions
    pods = {labels.MANAGED_BY: labels.GROVE_OPERATOR, labels.PART_OF: view.pcs.name, labels.SCALING_GROUP: group.name}
    stuck = progress.has_passed(group_deadline(view, group, stored), now)
    conditions = merged(
        existing,
        [breach, *progress.conditions(updating, stuck, progress.is_group_updated(view, group, stored))],
        now,
        first=stored.metadata.creation_timestamp,
        drop=(reasons.GANG_TERMINATION_IN_PROGRESS,) if breach.status == "False" else (),
    )
    wanted: Json = {
        "observedGeneration": stored.metadata.generation,
        "replicas": group.replicas,
        "scheduledReplicas": counts.scheduled,
        "availableReplicas": counts.available,
        "updatedReplicas": counts.updated,
        "selector": selector(**pods),
        "conditions": as_json(conditions),
    }
    # A new group that told the revision of before would seem to be updated later.
    if is_group_converged(view, group) and revisions.is_recorded(view.pcs):
        wanted["currentPodCliqueSetGenerationHash"] = view.pcs.status.current_generation_hash
    if update := progress.group_progress(view, group, stored, counts, now):
        wanted["updateProgress"] = update
    return difference(stored.status, wanted)


def group_deadline(view: View, group: Group, stored: PodCliqueScalingGroup) -> datetime | None:
    """When the scaling group's update counts as stuck if no further pod is replaced."""
    update = stored.status.update_progress
    if update is None or not progress.is_group_updating(view, group):
        return None
    members = [clique for clique in view.layout.members(group) if view.is_current(clique)]
    return progress.deadline(group.config.rolling_update, progress.last_step(view, members, update.update_started_at))


def _breach_condition(counts: GroupCounts, least: int, updating: bool) -> Condition:
    """Whether too few replicas are complete and healthy; Unknown while the group is updated."""
    message = f"{counts.healthy} of at least {least} replicas are well"
    if updating:
        status, reason, message = "Unknown", reasons.UPDATE_IN_PROGRESS, "the group's replicas are being replaced"
    elif counts.healthy < least:
        status, reason = "True", reasons.INSUFFICIENT_AVAILABLE_REPLICAS
    else:
        status, reason = "False", reasons.SUFFICIENT_AVAILABLE_REPLICAS
    return Condition(type=reasons.MIN_AVAILABLE_BREACHED, status=status, reason=reason, message=message)
