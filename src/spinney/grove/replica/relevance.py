"""Which changes can matter, to what a set replica does and to what is said about it: the others wake nobody."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api import reasons
from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.conditions import find
from spinney.api.core import Pod, Service
from spinney.api.grove import PodClique, PodCliqueScalingGroup
from spinney.api.meta import Condition, Object
from spinney.api.podgang import PodGang
from spinney.grove.model import pod_state
from spinney.grove.replica.termination import was_healthy, was_scheduled
from spinney.kube.caches.cache import Change

Facts = tuple[object, ...]


def changes_plan(change: Change[Any]) -> bool:
    """Whether a replica may have to do something.

    Of what is new only pods count: everything else it has made itself, and gone on from there.
    """
    if change.new is None:
        return True
    if change.old is None:
        return isinstance(change.new, Pod)
    return _read_by_plan(change.old) != _read_by_plan(change.new)


def changes_status(change: Change[Any]) -> bool:
    """Whether there may be something new to say about a replica."""
    if change.old is None or change.new is None:
        return True
    return _read_by_status(change.old) != _read_by_status(change.new)


def _read_by_plan(found: Object) -> Facts:
    """What plans read of an object."""
    metadata = found.metadata
    if isinstance(found, Pod):
        return (metadata.deletion_timestamp, metadata.labels, *_doing(found))
    common = _common(found)
    if isinstance(found, PodGang):
        return (*common, _said(found.status.conditions, reasons.BACKEND_READY))
    if isinstance(found, PodClique):
        return (*common, metadata.finalizers, was_scheduled(found) and _since(found, reasons.MIN_AVAILABLE_BREACHED))
    if isinstance(found, PodCliqueScalingGroup):
        breach = was_healthy(found) and _since(found, reasons.MIN_AVAILABLE_BREACHED)
        return (*common, metadata.finalizers, breach, _since(found, reasons.GANG_TERMINATION_IN_PROGRESS))
    if isinstance(found, Service):
        return (*common, found.spec.publish_not_ready_addresses)
    if isinstance(found, HorizontalPodAutoscaler):
        # The API server counts no generations of these.
        return (*common, found.spec)
    return common


def _read_by_status(found: Object) -> Facts:
    """What a status is made from."""
    metadata = found.metadata
    if isinstance(found, Pod):
        seen = (found.spec.scheduling_gates, pod_state.is_disrupted(found), _refusal(found))
        return (metadata.deletion_timestamp, metadata.labels, *_doing(found), *seen)
    if isinstance(found, PodGang):
        return (*_common(found), _said(found.status.conditions, reasons.BACKEND_READY))
    if isinstance(found, PodClique):
        return (*_common(found), _update_began(found))
    if isinstance(found, PodCliqueScalingGroup):
        return (*_common(found), _update_began(found), _since(found, reasons.GANG_TERMINATION_IN_PROGRESS))
    return _common(found)


def _common(found: Object) -> Facts:
    metadata = found.metadata
    return (metadata.generation, metadata.deletion_timestamp, metadata.labels, metadata.annotations)


def _doing(pod: Pod) -> Facts:
    return (
        pod_state.is_scheduled(pod),
        pod_state.is_ready(pod),
        pod.status.phase,
        pod_state.has_failed(pod),
        pod_state.is_stuck(pod),
    )


def _refusal(pod: Pod) -> str:
    said = find(pod.status.conditions, reasons.POD_SCHEDULED)
    return said.message if said is not None and said.status == "False" else ""


def _said(conditions: tuple[Condition, ...], kind: str) -> Facts:
    found = find(conditions, kind)
    return (found.status, found.reason, found.message, found.observed_generation) if found is not None else ()


def _update_began(found: PodClique | PodCliqueScalingGroup) -> datetime | None:
    """When the update began whose deadline counts from then."""
    progress = found.status.update_progress
    return progress.update_started_at if progress is not None else None


def _since(found: PodClique | PodCliqueScalingGroup, kind: str) -> datetime | None:
    """Since when a condition is true; None where it is not."""
    said = find(found.status.conditions, kind)
    return said.last_transition_time if said is not None and said.status == "True" else None
