"""A PodClique's status: counts of its pods, its conditions, and the progress of its update."""

from __future__ import annotations

from datetime import datetime

from spinney.api import labels, reasons
from spinney.api.conditions import as_json, merged
from spinney.api.grove import PodClique
from spinney.api.meta import Condition, Json
from spinney.grove.model.layout import Clique
from spinney.grove.model.metadata import selector
from spinney.grove.model.pod_counts import PodCounts
from spinney.grove.model.view import View
from spinney.grove.status import progress
from spinney.grove.status.patches import difference


def clique_patch(view: View, clique: Clique, stored: PodClique, now: datetime, *, group_updating: bool) -> Json:
    """What a clique's status must change; `group_updating` says whether its scaling group is being updated."""
    counts = view.counts(clique)
    current = view.is_current(clique)
    updating = progress.is_clique_updating(view, clique, stored)
    stuck = progress.has_passed(clique_deadline(view, clique, stored), now)
    conditions = [
        _scheduled_condition(counts, clique.min_available),
        _breach_condition(counts, clique.min_available, updating or group_updating),
        *progress.conditions(updating, stuck, progress.is_clique_updated(view, clique, stored)),
    ]
    created = stored.metadata.creation_timestamp
    wanted: Json = {
        "observedGeneration": stored.metadata.generation,
        "replicas": counts.replicas,
        "readyReplicas": counts.ready,
        "scheduledReplicas": counts.scheduled,
        "scheduleGatedReplicas": counts.gated,
        "updatedReplicas": counts.updated if current else 0,
        "conditions": as_json(merged(stored.status.conditions, conditions, now, first=created)),
    }
    if not clique.group:
        wanted["hpaPodSelector"] = selector(**{labels.PODCLIQUE: clique.name})
    if current and not updating and counts.updated == counts.replicas == stored.spec.replicas:
        wanted["currentPodTemplateHash"] = stored.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
        wanted["currentPodCliqueSetGenerationHash"] = view.pcs.status.current_generation_hash
    if update := progress.clique_progress(view, clique, stored, now):
        wanted["updateProgress"] = update
    return difference(stored.status, wanted)


def clique_deadline(view: View, clique: Clique, stored: PodClique) -> datetime | None:
    """When the clique's update counts as stuck if no further pod is replaced."""
    update = stored.status.update_progress
    if update is None or not progress.is_clique_updating(view, clique, stored):
        return None
    since = progress.last_step(view, [clique], update.update_started_at)
    return progress.deadline(clique.template.rolling_update, since)


def _scheduled_condition(counts: PodCounts, min_available: int) -> Condition:
    """Whether enough pods have a node."""
    enough = counts.scheduled >= min_available
    return Condition(
        type=reasons.CLIQUE_SCHEDULED,
        status="True" if enough else "False",
        reason=reasons.SUFFICIENT_SCHEDULED_PODS if enough else reasons.INSUFFICIENT_SCHEDULED_PODS,
        message=f"{counts.scheduled} of at least {min_available} pods are scheduled",
    )


def _breach_condition(counts: PodCounts, min_available: int, updating: bool) -> Condition:
    """Whether the clique has too few healthy pods, and why; Unknown while it is updated."""
    status, reason = "False", reasons.SUFFICIENT_READY_PODS
    message = f"{counts.healthy} of at least {min_available} pods are well"
    if updating:
        status, reason, message = "Unknown", reasons.UPDATE_IN_PROGRESS, "the clique's pods are being replaced"
    elif counts.scheduled < min_available:
        status, reason = "True", reasons.SCHEDULED_BELOW_MIN_AVAILABLE
        message = f"{counts.scheduled} of at least {min_available} pods are scheduled"
    elif counts.is_breached(min_available):
        status, reason = "True", reasons.INSUFFICIENT_READY_PODS
        message += f": {counts.failed} failed, {counts.stuck} started and not ready"
    return Condition(type=reasons.MIN_AVAILABLE_BREACHED, status=status, reason=reason, message=message)
