"""What plans and statuses read of each kind of object: a change of anything else wakes no controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from spinney.api import labels, reasons
from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.conditions import find
from spinney.api.core import Pod, Service
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Object
from spinney.api.podgang import PodGang
from spinney.grove.model import pod_state
from spinney.grove.replica.termination import true_since, was_healthy, was_scheduled
from spinney.kube.caches.cache import Change

# Reads one fact of an object.
Read = Callable[[Any], object]

_DELETED = attrgetter("metadata.deletion_timestamp")
_LABELS = attrgetter("metadata.labels")
_FINALIZERS = attrgetter("metadata.finalizers")
_METADATA: tuple[Read, ...] = (attrgetter("metadata.generation"), _DELETED, _LABELS, attrgetter("metadata.annotations"))


def _backend_ready(gang: PodGang) -> object:
    """The backend's condition; a new time alone is no change."""
    condition = find(gang.status.conditions, reasons.BACKEND_READY)
    if condition is None:
        return None
    return condition.status, condition.reason, condition.message, condition.observed_generation


def _breach(was_well: Callable[[Any], bool]) -> Read:
    """Since when an object is below its minimum, if it ever had it."""
    return lambda item: true_since(item, reasons.MIN_AVAILABLE_BREACHED) if was_well(item) else None


def _termination(group: PodCliqueScalingGroup) -> object:
    return true_since(group, reasons.GANG_TERMINATION_IN_PROGRESS)


def _refusal(pod: Pod) -> str:
    """Why the scheduler cannot place a pod."""
    condition = find(pod.status.conditions, reasons.POD_SCHEDULED)
    return condition.message if condition is not None and condition.status == "False" else ""


def _update_started(item: PodClique | PodCliqueScalingGroup) -> object:
    progress = item.status.update_progress
    return progress.update_started_at if progress is not None else None


def _updating_replicas(pcs: PodCliqueSet) -> object:
    progress = pcs.status.update_progress
    return progress.currently_updating if progress is not None else ()


_POD: tuple[Read, ...] = (
    _DELETED,
    _LABELS,
    pod_state.is_scheduled,
    pod_state.is_ready,
    attrgetter("status.phase"),
    pod_state.has_failed,
    pod_state.is_stuck,
)

_READ_BY_PLAN: Mapping[type[Object], tuple[Read, ...]] = {
    PodCliqueSet: (*_METADATA, _FINALIZERS, _updating_replicas),
    Pod: _POD,
    PodGang: (*_METADATA, _backend_ready),
    PodClique: (*_METADATA, _FINALIZERS, _breach(was_scheduled)),
    PodCliqueScalingGroup: (*_METADATA, _FINALIZERS, _breach(was_healthy), _termination),
    Service: (*_METADATA, attrgetter("spec.publish_not_ready_addresses")),
    # The API server counts no generations of these.
    HorizontalPodAutoscaler: (*_METADATA, attrgetter("spec")),
}
_READ_BY_STATUS: Mapping[type[Object], tuple[Read, ...]] = {
    PodCliqueSet: (attrgetter("status.current_generation_hash"),),
    Pod: (*_POD, attrgetter("spec.scheduling_gates"), pod_state.is_disrupted, _refusal),
    PodGang: (*_METADATA, _backend_ready),
    PodClique: (*_METADATA, _update_started),
    PodCliqueScalingGroup: (*_METADATA, _update_started, _termination),
}


def changes_plan(change: Change[Any]) -> bool:
    """Whether a replica's plan may change."""
    if change.new is None:
        return True
    if change.old is None:
        return _is_news(change.new)
    return _differ(_READ_BY_PLAN, change.old, change.new)


def _is_news(item: Object) -> bool:
    """Whether a new object changes plans: pods do, and sets with our finalizer; replicas created the others."""
    return isinstance(item, Pod) or (
        isinstance(item, PodCliqueSet) and labels.SET_FINALIZER in item.metadata.finalizers
    )


def changes_status(change: Change[Any]) -> bool:
    """Whether a replica's statuses may change."""
    if change.old is None or change.new is None:
        return True
    return _differ(_READ_BY_STATUS, change.old, change.new)


def _differ(table: Mapping[type[Object], tuple[Read, ...]], old: Object, new: Object) -> bool:
    return any(read(old) != read(new) for read in table.get(type(new), _METADATA))
