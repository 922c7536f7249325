"""The two conditions of a PodGang that its backend writes: BackendReady and Downgraded."""

from __future__ import annotations

from collections.abc import Sequence

from spinney.api.conditions import as_json, condition, find, merged
from spinney.api.meta import Condition, Json
from spinney.api.podgang import PodGang
from spinney.api.reasons import BACKEND_READY, DOWNGRADED, FEATURES_LOST, NOTHING_LOST, PENDING
from spinney.backends.capabilities import Loss
from spinney.backends.interface import Readiness
from spinney.kube.clock import Clock


def plan_status(
    gang: PodGang, readiness: Readiness, losses: Sequence[Loss], target: tuple[str, str], clock: Clock
) -> Json | None:
    """The merge patch of the gang's status, or None if nothing changes. `target` is backend and API version."""
    wanted = [_ready(gang, readiness), *_downgraded(gang, losses, target)]
    conditions = merged(gang.status.conditions, wanted, clock.now())
    if conditions == gang.status.conditions:
        return None
    # The list is atomic and the phase required: both go out whole, on the version they were read from.
    return {
        "metadata": {"resourceVersion": gang.metadata.resource_version},
        "status": {"phase": gang.status.phase or PENDING, "conditions": as_json(conditions)},
    }


def is_news(gang: PodGang, readiness: Readiness) -> bool:
    """Whether the gang's readiness changed, or why it is not ready: both are worth an event."""
    current = find(gang.status.conditions, BACKEND_READY)
    if current is None or current.status != str(readiness.ready):
        return True
    return not readiness.ready and current.reason != readiness.reason


def _ready(gang: PodGang, readiness: Readiness) -> Condition:
    generation = gang.metadata.generation
    return condition(BACKEND_READY, readiness.ready, readiness.reason, readiness.message, generation)


def _downgraded(gang: PodGang, losses: Sequence[Loss], target: tuple[str, str]) -> list[Condition]:
    generation = gang.metadata.generation
    if losses:
        message = "; ".join(loss.sentence(*target) for loss in losses)
        return [condition(DOWNGRADED, True, FEATURES_LOST, message, generation)]
    if find(gang.status.conditions, DOWNGRADED) is None:
        return []
    return [condition(DOWNGRADED, False, NOTHING_LOST, "", generation)]
