"""The status of a Job: how its pods are counted, each once, and which conditions follow from its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from spinney.api.batch import Job, UncountedPods
from spinney.api.conditions import find, is_true
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.api.pod_state import is_active, is_finished, is_ready
from spinney.api.times import rfc3339
from spinney.embedded.controllers.jobs import failure_policy, indexes
from spinney.embedded.controllers.jobs.indexes import index_of
from spinney.embedded.controllers.writes import ConditionRow, Event, changed_fields, condition

FINALIZER = "batch.kubernetes.io/job-tracking"


@dataclass(frozen=True)
class Outcome:
    """Whether a Job has failed or succeeded, with reason and message."""

    failure: tuple[str, str] | None = None
    success: tuple[str, str] | None = None


@dataclass(frozen=True)
class Tally:
    """A Job's pods by state. Ended pods are recorded by UID first, and counted once their finalizer is gone."""

    active: list[Pod]
    terminating: list[Pod]
    failed_pods: list[Pod]
    # Ended, with the finalizer.
    ended: list[Pod]
    uncounted: UncountedPods
    counted_succeeded: int
    counted_failed: int
    # None unless the Job is indexed.
    completed_indexes: set[int] | None
    failed_indexes: set[int]

    @property
    def succeeded(self) -> int:
        """Completed indexes, or pods that have succeeded."""
        if self.completed_indexes is not None:
            return len(self.completed_indexes)
        return self.counted_succeeded + len(self.uncounted.succeeded)

    @property
    def failed(self) -> int:
        """Pods that have failed."""
        return self.counted_failed + len(self.uncounted.failed)


def is_indexed(job: Job) -> bool:
    """Whether each pod has a completion index."""
    return job.spec.completion_mode == "Indexed"


def is_over(job: Job) -> bool:
    """Whether a Job is complete or has failed."""
    return is_true(job.status.conditions, "Complete") or is_true(job.status.conditions, "Failed")


def count(job: Job, pods: list[Pod], ended: list[Pod]) -> Tally:
    """Count a Job's pods; `ended` are those with the finalizer that count as ended."""
    held = {pod.uid for pod in pods if FINALIZER in pod.metadata.finalizers}
    recorded = job.status.uncounted_terminated_pods
    succeeded = {pod.uid for pod in ended if pod.status.phase == "Succeeded"}
    failed = {pod.uid for pod in ended if pod.uid not in succeeded and _counts_as_failed(job, pod)}
    completed = None
    if is_indexed(job):
        completed = indexes.parse(job.status.completed_indexes)
        completed |= {index_of(pod) for pod in pods if pod.status.phase == "Succeeded" and index_of(pod) >= 0}
    return Tally(
        active=[pod for pod in pods if is_active(pod)],
        terminating=[pod for pod in pods if pod.metadata.deletion_timestamp and not is_finished(pod)],
        failed_pods=[pod for pod in pods if pod.status.phase == "Failed"],
        ended=ended,
        uncounted=UncountedPods(succeeded=tuple(sorted(succeeded)), failed=tuple(sorted(failed))),
        counted_succeeded=job.status.succeeded + len(set(recorded.succeeded) - held),
        counted_failed=job.status.failed + len(set(recorded.failed) - held),
        completed_indexes=completed,
        failed_indexes=indexes.failed_indexes(job, pods),
    )


def _counts_as_failed(job: Job, pod: Pod) -> bool:
    return pod.status.phase != "Failed" or failure_policy.action(job, pod)[0] != "Ignore"


def plan_status(
    job: Job, tally: Tally, outcome: Outcome, now: datetime, *, removed: list[Pod], created: int
) -> tuple[Json, list[Event]]:
    """The status fields that change, and the events to send, when so many pods are removed and created."""
    active = len(tally.active) - len(removed) + created
    terminating = len(tally.terminating) + len(removed)
    status = _counts(job, tally, active, terminating, {pod.uid for pod in removed})
    if job.status.start_time is None and not job.spec.suspend:
        status["startTime"] = rfc3339(now)
    settled = not (active or terminating or tally.uncounted.succeeded or tally.uncounted.failed)
    rows = _changed_conditions(job, outcome, settled)
    if rows:
        status |= _conditions_patch(job, rows, now)
    if any(row[:2] == ("Suspended", "False") for row in rows):
        status["startTime"] = rfc3339(now)
    if outcome.success and settled:
        status["completionTime"] = rfc3339(now)
    return status, [event for row in rows if (event := _event(*row)) is not None]


def _counts(job: Job, tally: Tally, active: int, terminating: int, removed: set[str]) -> Json:
    status = changed_fields(
        job.status,
        active=active,
        ready=sum(1 for pod in tally.active if is_ready(pod) and pod.uid not in removed),
        terminating=terminating,
        succeeded=tally.counted_succeeded if tally.completed_indexes is None else tally.succeeded,
        failed=tally.counted_failed,
    )
    if tally.completed_indexes is not None:
        status |= changed_fields(job.status, completed_indexes=indexes.render(tally.completed_indexes))
    if indexes.per_index(job):
        status |= changed_fields(job.status, failed_indexes=indexes.render(tally.failed_indexes))
    uncounted = tally.uncounted
    if job.status.ready is None or uncounted != job.status.uncounted_terminated_pods:
        uids = {"succeeded": list(uncounted.succeeded) or None, "failed": list(uncounted.failed) or None}
        status["uncountedTerminatedPods"] = uids
    return status


def _changed_conditions(job: Job, outcome: Outcome, settled: bool) -> list[ConditionRow]:
    """The conditions whose status changes: first the outcome's target, and the outcome once all pods are gone."""
    rows: list[ConditionRow] = []
    if outcome.failure:
        rows = [("FailureTarget", "True", *outcome.failure), ("Failed", "True", *outcome.failure)]
    elif outcome.success:
        rows = [("SuccessCriteriaMet", "True", *outcome.success), ("Complete", "True", *outcome.success)]
    if not settled:
        del rows[1:]
    if job.spec.suspend:
        rows.append(("Suspended", "True", "JobSuspended", "Job suspended"))
    elif find(job.status.conditions, "Suspended") is not None:
        rows.append(("Suspended", "False", "JobResumed", "Job resumed"))
    current = {condition.type: condition.status for condition in job.status.conditions}
    return [row for row in rows if current.get(row[0]) != row[1]]


def _conditions_patch(job: Job, rows: list[ConditionRow], now: datetime) -> Json:
    """A strategic merge patch that appends new conditions to those that exist."""
    order = dict.fromkeys((*(existing.type for existing in job.status.conditions), *(type_ for type_, *_ in rows)))
    return {
        "conditions": [{**condition(*row, now), "lastProbeTime": rfc3339(now)} for row in rows],
        "$setElementOrder/conditions": [{"type": type_} for type_ in order],
    }


def _event(type_: str, status: str, reason: str, message: str) -> Event | None:
    match type_, status:
        case "Failed", _:
            return "Warning", reason, message
        case "Complete", _:
            return "Normal", "Completed", "Job completed"
        case "Suspended", "True":
            return "Normal", "Suspended", message
        case "Suspended", _:
            return "Normal", "Resumed", message
    return None
