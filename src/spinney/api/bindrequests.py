"""Read a BindRequest: its decision, its pod, and whether it is finished."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.kai import BindRequest
from spinney.api.numbers import whole_number


def decision_of(request: BindRequest) -> tuple[str, int]:
    """The decision that a request belongs to, and its number of requests; 1 for requests of other schedulers."""
    annotations = request.metadata.annotations
    members = whole_number(annotations.get(labels.DECISION_MEMBERS, "1"))
    return annotations.get(labels.DECISION, ""), 1 if members is None else members


def retries(request: BindRequest) -> int:
    """How often a failed bind is retried; upstream's requests have no limit and fail at the first error."""
    return request.spec.backoff_limit or 0


def is_final(request: BindRequest) -> bool:
    """Whether a request needs no more work: done, or failed as often as it may."""
    return has_failed(request) or request.status.phase == "Succeeded"


def has_failed(request: BindRequest) -> bool:
    """Whether the binder has given up on a request."""
    return request.status.phase == "Failed" and request.status.failed_attempts >= max(retries(request), 1)


def is_for(request: BindRequest, pod: Pod) -> bool:
    """Whether the request is for this pod, by the UID of its owner."""
    owners = [owner.uid for owner in request.metadata.owner_references if owner.kind == "Pod"]
    return not owners or pod.uid in owners
