"""What a Job needs next, decided from the Job, its pods and the time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from spinney.api.batch import Job
from spinney.api.conditions import find
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.api.pod_state import is_active, is_finished
from spinney.embedded.controllers.jobs import failure_policy, indexes
from spinney.embedded.controllers.jobs.indexes import FAILURES, INDEX, index_of
from spinney.embedded.controllers.jobs.job_status import (
    FINALIZER,
    Outcome,
    Tally,
    count,
    is_indexed,
    is_over,
    plan_status,
)
from spinney.embedded.controllers.pods.replicas import from_template, least_wanted_first
from spinney.embedded.controllers.writes import BURST, Event

_REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")
_UID_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")


@dataclass
class JobPlan:
    """The wanted changes, and after how many seconds to look again."""

    create: list[Json] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)
    # Surplus pods, deleted without being counted.
    drop: list[Pod] = field(default_factory=list)
    # Pods whose finalizer is no longer needed.
    release: list[Pod] = field(default_factory=list)
    status: Json = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    # The time to live is over: delete the Job itself.
    expired: bool = False
    wake: float | None = None

    def wake_in(self, seconds: float) -> None:
        """Look again after so many seconds, or earlier."""
        self.wake = seconds if self.wake is None else min(self.wake, seconds)


def plan_job(job: Job, pods: list[Pod], now: datetime) -> JobPlan:
    """Everything that should change for a Job."""
    plan = JobPlan()
    held = [pod for pod in pods if FINALIZER in pod.metadata.finalizers]
    if is_over(job):
        plan.release = held
        plan.delete = [pod for pod in pods if is_active(pod)]
        _expire(job, now, plan)
        return plan
    tally = count(job, pods, [pod for pod in held if _has_ended(job, pod)])
    outcome = _outcome(job, tally, now, plan)
    if outcome.failure:
        # The pods that still run have failed with their Job.
        tally = count(job, pods, held)
    plan.release = held if outcome.success else tally.ended
    if outcome.failure or outcome.success:
        plan.delete = tally.active
    elif job.spec.suspend:
        plan.drop = tally.active
    else:
        _scale(job, pods, tally, now, plan)
    removed, created = [*plan.delete, *plan.drop], len(plan.create)
    plan.status, plan.events = plan_status(job, tally, outcome, now, removed=removed, created=created)
    return plan


def _has_ended(job: Job, pod: Pod) -> bool:
    """Whether a pod counts as ended: a deleted one does, unless the Job replaces failed pods only."""
    if job.spec.pod_replacement_policy == "Failed":
        return is_finished(pod)
    return is_finished(pod) or pod.metadata.deletion_timestamp is not None


def _expire(job: Job, now: datetime, plan: JobPlan) -> None:
    """Delete a finished Job when its time to live is over."""
    ttl = job.spec.ttl_seconds_after_finished
    if ttl is None:
        return
    finished = next(
        condition.last_transition_time
        for condition in job.status.conditions
        if condition.type in ("Complete", "Failed") and condition.status == "True"
    )
    left = ttl - (now - (finished or now)).total_seconds()
    if left <= 0:
        plan.expired = True
    else:
        plan.wake_in(left)


def _outcome(job: Job, tally: Tally, now: datetime, plan: JobPlan) -> Outcome:
    """The outcome of a Job: an earlier decision stands, and failure comes before success."""
    decided = find(job.status.conditions, "SuccessCriteriaMet")
    if decided is not None and decided.status == "True":
        return Outcome(success=(decided.reason, decided.message))
    failure = _failure(job, tally, now, plan)
    if failure is not None:
        return Outcome(failure=failure)
    if tally.completed_indexes and (early := indexes.success(job, tally.completed_indexes)):
        return Outcome(success=early)
    return Outcome(success=_REACHED if _is_complete(job, tally) else None)


def _failure(job: Job, tally: Tally, now: datetime, plan: JobPlan) -> tuple[str, str] | None:
    """Why a Job has failed; None where it has not."""
    target = find(job.status.conditions, "FailureTarget")
    if target is not None and target.status == "True":
        return target.reason, target.message
    for pod in tally.failed_pods:
        action, message = failure_policy.action(job, pod)
        if action == "FailJob":
            return "PodFailurePolicy", message
    if tally.failed > job.spec.backoff_limit or _restarts_exceed(job, tally):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if job.spec.active_deadline_seconds is not None and job.status.start_time and not job.spec.suspend:
        left = job.spec.active_deadline_seconds - (now - job.status.start_time).total_seconds()
        if left <= 0:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        plan.wake_in(left)
    if not indexes.per_index(job):
        return None
    return indexes.failure(job, tally.completed_indexes or set(), tally.failed_indexes)


def _restarts_exceed(job: Job, tally: Tally) -> bool:
    """Whether in-place restarts reach the back-off limit: with OnFailure they count as failures."""
    if (job.spec.template.get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(status.restart_count for pod in tally.active for status in pod.status.container_statuses)
    return restarts > 0 and restarts >= job.spec.backoff_limit


def _is_complete(job: Job, tally: Tally) -> bool:
    if job.spec.completions is None:
        return tally.succeeded > 0 and not tally.active
    return tally.succeeded >= job.spec.completions


def _scale(job: Job, pods: list[Pod], tally: Tally, now: datetime, plan: JobPlan) -> None:
    """Create or drop pods so that as many run as should."""
    missing = _wanted(job, tally) - len(tally.active)
    if missing < 0:
        plan.drop = least_wanted_first(tally.active)[:-missing]
        return
    if job.spec.pod_replacement_policy == "Failed":
        # A pod is replaced once it is known how it ended.
        missing -= len(tally.terminating)
    if missing <= 0:
        return
    missing = min(missing, BURST)
    delay = 0.0 if indexes.per_index(job) else indexes.back_off(tally.failed_pods, tally.failed, now)
    if delay > 0:
        plan.wake_in(delay)
    elif is_indexed(job):
        free = _free_indexes(job, pods, tally, now, plan)
        plan.create = [_indexed_pod(job, index, pods) for index in islice(free, missing)]
    else:
        plan.create = [_pod(job, f"{job.name}-") for _ in range(missing)]


def _wanted(job: Job, tally: Tally) -> int:
    """How many pods should run."""
    if job.spec.completions is None:
        return len(tally.active) if tally.succeeded else job.spec.parallelism
    return min(job.spec.parallelism, job.spec.completions - tally.succeeded - len(tally.failed_indexes))


def _free_indexes(job: Job, pods: list[Pod], tally: Tally, now: datetime, plan: JobPlan) -> Iterator[int]:
    """The indexes that need a pod and whose retry delay is over; there may be two billion."""
    used = (tally.completed_indexes or set()) | tally.failed_indexes
    used |= {index_of(pod) for pod in (*tally.active, *tally.terminating)}
    failed = {index_of(pod) for pod in pods} if indexes.per_index(job) else set()
    for index in range(job.spec.completions or 0):
        if index in used:
            continue
        delay = indexes.retry_delay(pods, index, now) if index in failed else 0.0
        if delay > 0:
            plan.wake_in(delay)
        else:
            yield index


def _pod(job: Job, prefix: str) -> Json:
    pod = from_template(job, job.spec.template)
    pod["metadata"]["generateName"] = prefix
    pod["metadata"]["labels"] |= dict.fromkeys(_UID_LABELS, job.uid) | dict.fromkeys(_NAME_LABELS, job.name)
    pod["metadata"]["finalizers"].append(FINALIZER)
    return pod


def _indexed_pod(job: Job, index: int, pods: list[Pod]) -> Json:
    pod = _pod(job, f"{job.name}-{index}-")
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["annotations"][INDEX] = metadata["labels"][INDEX] = str(index)
    if indexes.per_index(job):
        metadata["annotations"][FAILURES] = str(indexes.failures_before(pods, index))
    spec.setdefault("hostname", f"{job.name}-{index}")
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}
    for group in ("initContainers", "containers"):
        if group in spec:
            spec[group] = [{**container, "env": [*(container.get("env") or []), variable]} for container in spec[group]]
    return pod
