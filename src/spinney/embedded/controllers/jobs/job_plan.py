"""What a Job needs next, decided from the Job, its pods and the time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from spinney.api.batch import Job
from spinney.api.conditions import find, is_true
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.api.times import rfc3339
from spinney.embedded.controllers.jobs import failure_policy, index_policy, indexes
from spinney.embedded.controllers.jobs.index_policy import FAILURES, INDEX, index_of
from spinney.embedded.controllers.pods.state import from_template, is_active, is_ready, is_terminal, least_wanted_first

FINALIZER = "batch.kubernetes.io/job-tracking"
_REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")
_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
_NAMES = ("batch.kubernetes.io/job-name", "job-name")


@dataclass
class JobPlan:
    """The wanted changes, and when to look again if nothing happens."""

    create: list[Json] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)
    # Pods that are too many and go uncounted.
    drop: list[Pod] = field(default_factory=list)
    # Pods that have been seen to end and may go.
    release: list[Pod] = field(default_factory=list)
    status: Json = field(default_factory=dict)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    # Finished long enough ago: the Job itself goes.
    expired: bool = False
    wake: float | None = None

    def wake_in(self, seconds: float) -> None:
        """Look again after so long, or earlier."""
        self.wake = seconds if self.wake is None else min(self.wake, seconds)


@dataclass(frozen=True)
class _Tally:
    """How a Job's pods stand."""

    active: list[Pod]
    terminating: list[Pod]
    succeeded: int
    failed: int
    completed: set[int]
    failed_indexes: set[int]
    failed_pods: list[Pod]


@dataclass(frozen=True)
class _Outcome:
    """Whether a Job is over: failed or done, each with reason and message."""

    failure: tuple[str, str] | None = None
    success: tuple[str, str] | None = None


def plan_job(job: Job, pods: list[Pod], now: datetime) -> JobPlan:
    """Everything that should change for a Job."""
    plan = JobPlan()
    if _finished(job):
        _clean_up(job, pods, now, plan)
        return plan
    held = [pod for pod in pods if FINALIZER in pod.metadata.finalizers]
    tally = _count(job, pods, [pod for pod in held if _has_ended(job, pod)], plan)
    outcome = _outcome(job, tally, now, plan)
    if outcome.failure:
        # When a Job has failed, so has every pod of it that still ran.
        tally = _count(job, pods, held, plan)
    elif outcome.success:
        plan.release = held
    if outcome.failure or outcome.success:
        plan.delete = tally.active
    elif job.spec.suspend:
        plan.drop = tally.active
    else:
        _scale(job, pods, tally, now, plan)
    _write_status(job, tally, outcome, now, plan)
    return plan


def _outcome(job: Job, tally: _Tally, now: datetime, plan: JobPlan) -> _Outcome:
    """What was decided before stands; else a Job fails before it succeeds."""
    decided = find(job.status.conditions, "SuccessCriteriaMet")
    if decided is not None and decided.status == "True":
        return _Outcome(success=(decided.reason, decided.message))
    failure = _failure(job, tally, now, plan)
    if failure is not None:
        return _Outcome(failure=failure)
    if _indexed(job) and (early := index_policy.success(job, tally.completed)):
        return _Outcome(success=early)
    return _Outcome(success=_REACHED if _complete(job, tally) else None)


def _finished(job: Job) -> bool:
    return is_true(job.status.conditions, "Complete") or is_true(job.status.conditions, "Failed")


def _clean_up(job: Job, pods: list[Pod], now: datetime, plan: JobPlan) -> None:
    plan.release = [pod for pod in pods if FINALIZER in pod.metadata.finalizers]
    plan.delete = [pod for pod in pods if is_active(pod)]
    ttl = job.spec.ttl_seconds_after_finished
    if ttl is None:
        return
    ended = next(
        condition.last_transition_time
        for condition in job.status.conditions
        if condition.type in ("Complete", "Failed") and condition.status == "True"
    )
    left = ttl - (now - (ended or now)).total_seconds()
    if left <= 0:
        plan.expired = True
    else:
        plan.wake_in(left)


def _count(job: Job, pods: list[Pod], ended: list[Pod], plan: JobPlan) -> _Tally:
    """Count pods that have ended, each once: first noted by UID, counted when its finalizer is gone."""
    held = {pod.uid: pod for pod in pods if FINALIZER in pod.metadata.finalizers}
    noted = job.status.uncounted_terminated_pods
    won = {pod.uid for pod in ended if pod.status.phase == "Succeeded"}
    lost = {pod.uid for pod in ended if pod.uid not in won and _counts_as_failed(job, pod)}
    succeeded = job.status.succeeded + len(set(noted.succeeded) - held.keys())
    failed = job.status.failed + len(set(noted.failed) - held.keys())
    keep_won, keep_lost = sorted(won), sorted(lost)
    if job.status.ready is None or (tuple(keep_won), tuple(keep_lost)) != (noted.succeeded, noted.failed):
        plan.status["uncountedTerminatedPods"] = {"succeeded": keep_won or None, "failed": keep_lost or None}
    plan.release = ended
    completed = indexes.parse(job.status.completed_indexes)
    if _indexed(job):
        completed |= {index_of(pod) for pod in pods if pod.status.phase == "Succeeded" and index_of(pod) >= 0}
    return _Tally(
        active=[pod for pod in pods if is_active(pod)],
        terminating=[pod for pod in pods if pod.metadata.deletion_timestamp and not is_terminal(pod)],
        succeeded=len(completed) if _indexed(job) else succeeded + len(won),
        failed=failed + len(lost),
        completed=completed,
        failed_indexes=index_policy.failed_indexes(job, pods),
        failed_pods=[pod for pod in pods if pod.status.phase == "Failed"],
    )


def _failure(job: Job, tally: _Tally, now: datetime, plan: JobPlan) -> tuple[str, str] | None:
    """Why the Job has failed, if it has."""
    target = find(job.status.conditions, "FailureTarget")
    if target is not None and target.status == "True":
        return target.reason, target.message
    for pod in tally.failed_pods:
        message = _fails_job(job, pod)
        if message:
            return "PodFailurePolicy", message
    if tally.failed > job.spec.backoff_limit or _restarts_exceed(job, tally):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if job.spec.active_deadline_seconds is not None and job.status.start_time and not job.spec.suspend:
        left = job.spec.active_deadline_seconds - (now - job.status.start_time).total_seconds()
        if left <= 0:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        plan.wake_in(left)
    return index_policy.failure(job, tally.completed, tally.failed_indexes) if index_policy.per_index(job) else None


def _restarts_exceed(job: Job, tally: _Tally) -> bool:
    """Under OnFailure the kubelet restarts in place, and those restarts count."""
    if (job.spec.template.get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(status.restart_count for pod in tally.active for status in pod.status.container_statuses)
    return restarts > 0 and restarts >= job.spec.backoff_limit


def _complete(job: Job, tally: _Tally) -> bool:
    if job.spec.completions is None:
        return tally.succeeded > 0 and not tally.active
    return tally.succeeded >= job.spec.completions


def _scale(job: Job, pods: list[Pod], tally: _Tally, now: datetime, plan: JobPlan) -> None:
    """Start or stop pods so that as many run as should."""
    if job.spec.completions is None:
        wanted = len(tally.active) if tally.succeeded else job.spec.parallelism
    else:
        left = job.spec.completions - tally.succeeded - len(tally.failed_indexes)
        wanted = min(job.spec.parallelism, left)
    surplus = len(tally.active) - wanted
    if surplus > 0:
        plan.drop = least_wanted_first(tally.active)[:surplus]
        return
    missing = -surplus
    if job.spec.pod_replacement_policy == "Failed":
        # Nothing is replaced before it is known how it ended.
        missing -= len(tally.terminating)
    if missing <= 0:
        return
    wait = 0.0 if index_policy.per_index(job) else index_policy.back_off(tally.failed_pods, tally.failed, now)
    if wait > 0:
        plan.wake_in(wait)
        return
    if _indexed(job):
        plan.create = [_pod(job, index, pods) for index in _free(job, pods, tally, now, plan)[:missing]]
    else:
        plan.create = [_pod(job, None, pods) for _ in range(missing)]


def _free(job: Job, pods: list[Pod], tally: _Tally, now: datetime, plan: JobPlan) -> list[int]:
    """The indexes that need a pod and have rested."""
    used = tally.completed | tally.failed_indexes | {index_of(pod) for pod in (*tally.active, *tally.terminating)}
    free = [index for index in range(job.spec.completions or 0) if index not in used]
    if not index_policy.per_index(job):
        return free
    rests = {index: index_policy.rest(pods, index, now) for index in free}
    for wait in rests.values():
        if wait > 0:
            plan.wake_in(wait)
    return [index for index in free if rests[index] <= 0]


def _pod(job: Job, index: int | None, pods: list[Pod]) -> Json:
    pod = from_template(job, job.spec.template)
    labels = pod["metadata"]["labels"]
    labels |= dict.fromkeys(_LABELS, job.uid) | dict.fromkeys(_NAMES, job.name)
    pod["metadata"]["finalizers"].append(FINALIZER)
    if index is None:
        pod["metadata"]["generateName"] = f"{job.name}-"
        return pod
    pod["metadata"]["generateName"] = f"{job.name}-{index}-"
    pod["metadata"]["annotations"][INDEX] = labels[INDEX] = str(index)
    if index_policy.per_index(job):
        pod["metadata"]["annotations"][FAILURES] = str(index_policy.failures_before(pods, index))
    pod["spec"].setdefault("hostname", f"{job.name}-{index}")
    source = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}}
    for group in ("initContainers", "containers"):
        if group in pod["spec"]:
            pod["spec"][group] = [{**c, "env": [*(c.get("env") or []), source]} for c in pod["spec"][group]]
    return pod


def _write_status(job: Job, tally: _Tally, outcome: _Outcome, now: datetime, plan: JobPlan) -> None:
    status = plan.status
    stopping = bool(outcome.failure or outcome.success or job.spec.suspend)
    active = 0 if stopping else len(tally.active) - len(plan.drop) + len(plan.create)
    deleted = {pod.uid for pod in (*plan.delete, *plan.drop)}
    ready = sum(1 for pod in tally.active if is_ready(pod) and pod.uid not in deleted)
    terminating = len(tally.terminating) + len(plan.delete) + len(plan.drop)
    # Pods that are noted but not counted yet are neither active nor in the totals.
    noted_won = len((status.get("uncountedTerminatedPods") or {}).get("succeeded") or ())
    noted_lost = len((status.get("uncountedTerminatedPods") or {}).get("failed") or ())
    if "uncountedTerminatedPods" not in status:
        noted_won = len(job.status.uncounted_terminated_pods.succeeded)
        noted_lost = len(job.status.uncounted_terminated_pods.failed)
    counted = {
        "active": active,
        "ready": ready,
        "terminating": terminating,
        "succeeded": tally.succeeded if _indexed(job) else tally.succeeded - noted_won,
        "failed": tally.failed - noted_lost,
    }
    for name, value in counted.items():
        if getattr(job.status, name) != value:
            status[name] = value
    completed = indexes.render(tally.completed)
    if _indexed(job) and completed != job.status.completed_indexes:
        status["completedIndexes"] = completed
    failed = indexes.render(tally.failed_indexes)
    if index_policy.per_index(job) and failed != job.status.failed_indexes:
        status["failedIndexes"] = failed
    if job.status.start_time is None and not job.spec.suspend:
        status["startTime"] = rfc3339(now)
    settled = not terminating and not noted_won and not noted_lost and not active
    conditions = _conditions(job, outcome, settled, now, plan)
    if conditions is not None:
        status["conditions"] = conditions
        # New conditions go behind those that are there.
        order = [each.type for each in job.status.conditions]
        order += [each["type"] for each in conditions if each["type"] not in order]
        status["$setElementOrder/conditions"] = [{"type": type_} for type_ in order]
    if outcome.success and settled:
        status["completionTime"] = rfc3339(now)


def _conditions(job: Job, outcome: _Outcome, settled: bool, now: datetime, plan: JobPlan) -> list[Json] | None:
    """The conditions that change: first what the Job is heading for, and once its pods are gone what it is."""
    wanted: list[tuple[str, str, str, str]] = []
    if outcome.failure:
        wanted.append(("FailureTarget", "True", *outcome.failure))
        if settled:
            wanted.append(("Failed", "True", *outcome.failure))
            plan.events.append(("Warning", *outcome.failure))
    elif outcome.success:
        wanted.append(("SuccessCriteriaMet", "True", *outcome.success))
        if settled:
            wanted.append(("Complete", "True", *outcome.success))
            plan.events.append(("Normal", "Completed", "Job completed"))
    suspended = find(job.status.conditions, "Suspended")
    if job.spec.suspend and not (suspended and suspended.status == "True"):
        wanted.append(("Suspended", "True", "JobSuspended", "Job suspended"))
        plan.events.append(("Normal", "Suspended", "Job suspended"))
    elif not job.spec.suspend and suspended and suspended.status == "True":
        wanted.append(("Suspended", "False", "JobResumed", "Job resumed"))
        plan.status["startTime"] = rfc3339(now)
        plan.events.append(("Normal", "Resumed", "Job resumed"))
    changed = [
        {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastProbeTime": rfc3339(now),
            "lastTransitionTime": rfc3339(now),
        }
        for type_, status, reason, message in wanted
        if not ((old := find(job.status.conditions, type_)) and old.status == status)
    ]
    return changed or None


def _has_ended(job: Job, pod: Pod) -> bool:
    """Deleted pods have ended too, since nobody may ever say how; unless the Job wants to know before it goes on."""
    only_failed = job.spec.pod_replacement_policy == "Failed"
    return is_terminal(pod) or (pod.metadata.deletion_timestamp is not None and not only_failed)


def _counts_as_failed(job: Job, pod: Pod) -> bool:
    return pod.status.phase != "Failed" or failure_policy.action(job, pod)[0] != "Ignore"


def _fails_job(job: Job, pod: Pod) -> str:
    action, message = failure_policy.action(job, pod)
    return message if action == "FailJob" else ""


def _indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"
