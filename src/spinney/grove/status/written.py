"""What is written about a clique and about a scaling group, as the difference to what is stored."""

from __future__ import annotations

from datetime import datetime

from spinney.api import labels, reasons
from spinney.api.grove import PodClique, PodCliqueScalingGroup
from spinney.api.meta import Json
from spinney.grove.model.layout import Clique, Group
from spinney.grove.model.metadata import selector
from spinney.grove.model.updates import is_group_converged
from spinney.grove.model.view import View
from spinney.grove.status import cliques, groups, progress
from spinney.grove.status.patches import difference, turned


def clique_patch(view: View, clique: Clique, found: PodClique, now: datetime) -> Json:
    """What a clique's status must change."""
    counts = view.counts(clique)
    current = view.is_current(clique)
    updating = progress.is_clique_updating(view, clique)
    group = next((group for group in view.layout.groups if group.name == clique.group), None)
    suspended = updating or (group is not None and progress.is_group_updating(view, group))
    wanted: Json = {
        "observedGeneration": found.metadata.generation,
        "replicas": counts.replicas,
        "readyReplicas": counts.ready,
        "scheduledReplicas": counts.scheduled,
        "scheduleGatedReplicas": counts.gated,
        "updatedReplicas": counts.updated if current else 0,
        "conditions": turned(
            found.status.conditions,
            [
                cliques.scheduled_condition(counts, clique.min_available),
                cliques.breach_condition(counts, clique.min_available, suspended),
                *progress.conditions(found.status.conditions, updating, clique_stuck_at(view, clique, found, now)),
            ],
            now,
            found.metadata.creation_timestamp,
        ),
    }
    if not clique.group:
        wanted["hpaPodSelector"] = selector(**{labels.PODCLIQUE: clique.name})
    if current and not updating and counts.updated == counts.replicas == found.spec.replicas:
        wanted["currentPodTemplateHash"] = found.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
        wanted["currentPodCliqueSetGenerationHash"] = view.pcs.status.current_generation_hash
    steps = progress.clique_progress(view, clique, found, now)
    if steps is not None:
        wanted["updateProgress"] = steps
    return difference(found.status, wanted)


def group_patch(view: View, group: Group, found: PodCliqueScalingGroup, now: datetime) -> Json:
    """What a scaling group's status must change."""
    counts = groups.count(view, group)
    updating = progress.is_group_updating(view, group)
    breach = groups.breach_condition(counts, group.in_base, updating)
    existing = found.status.conditions
    if breach.status == "False":
        existing = tuple(c for c in existing if c.type != reasons.GANG_TERMINATION_IN_PROGRESS)
    pods = {
        labels.MANAGED_BY: labels.GROVE_OPERATOR,
        labels.PART_OF: view.pcs.name,
        labels.SCALING_GROUP: group.name,
    }
    wanted: Json = {
        "observedGeneration": found.metadata.generation,
        "replicas": group.replicas,
        "scheduledReplicas": counts.scheduled,
        "availableReplicas": counts.available,
        "updatedReplicas": counts.updated,
        "selector": selector(**pods),
        "conditions": turned(
            existing,
            [breach, *progress.conditions(existing, updating, group_stuck_at(view, group, found, now))],
            now,
            found.metadata.creation_timestamp,
        ),
    }
    if is_group_converged(view, group):
        wanted["currentPodCliqueSetGenerationHash"] = view.pcs.status.current_generation_hash
    steps = progress.group_progress(view, group, found, counts, now)
    if steps is not None:
        wanted["updateProgress"] = steps
    return difference(found.status, wanted)


def clique_deadline(view: View, clique: Clique, found: PodClique) -> datetime | None:
    """When the clique's update counts as stuck if nothing moves."""
    known = found.status.update_progress
    if known is None or not progress.is_clique_updating(view, clique):
        return None
    since = progress.last_step(view, [clique], known.update_started_at)
    return progress.deadline(clique.template.rolling_update, since)


def group_deadline(view: View, group: Group, found: PodCliqueScalingGroup) -> datetime | None:
    """When the scaling group's update counts as stuck if nothing moves."""
    known = found.status.update_progress
    if known is None or not progress.is_group_updating(view, group):
        return None
    members = [clique for clique in view.layout.members(group) if view.is_current(clique)]
    return progress.deadline(group.config.rolling_update, progress.last_step(view, members, known.update_started_at))


def clique_stuck_at(view: View, clique: Clique, found: PodClique, now: datetime) -> datetime | None:
    """The deadline, if it is over."""
    due = clique_deadline(view, clique, found)
    return due if due is not None and due <= now else None


def group_stuck_at(view: View, group: Group, found: PodCliqueScalingGroup, now: datetime) -> datetime | None:
    """The deadline, if it is over."""
    due = group_deadline(view, group, found)
    return due if due is not None and due <= now else None
