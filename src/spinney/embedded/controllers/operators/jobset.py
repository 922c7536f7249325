"""JobSet: each replicated job as Jobs `<set>-<job>-<index>`, restarted together when one fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from spinney.api import labels
from spinney.api.batch import Job
from spinney.api.conditions import is_true
from spinney.api.meta import Json
from spinney.api.untyped import Untyped
from spinney.embedded.controllers.jobs.job_status import is_over
from spinney.embedded.controllers.operators.plan import (
    Child,
    Children,
    OperatorPlan,
    check_size,
    child_metadata,
    count,
    has_condition,
    labelled,
    unwanted,
    with_condition,
)

_NAME = "jobset.sigs.k8s.io/jobset-name"
_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"


def job_set(owner: Untyped, children: Children, now: datetime) -> OperatorPlan:
    """What a JobSet needs."""
    jobs = children.jobs
    if has_condition(owner.status, "Completed", "Failed"):
        return OperatorPlan(delete=[job for job in jobs if not is_over(job)])
    attempt = count(owner.status.get("restarts"), 0)
    current = [job for job in jobs if job.metadata.labels.get(_ATTEMPT) == str(attempt)]
    listed: Sequence[Json] = owner.spec.get("replicatedJobs") or ()
    check_size(sum(count(replicated.get("replicas"), 1) for replicated in listed))
    suspended = bool(owner.spec.get("suspend"))
    wanted = [
        Child(Job, _job(owner, replicated, index, attempt))
        for replicated in _started(owner, listed, current)
        for index in range(count(replicated.get("replicas"), 1))
    ]
    plan = OperatorPlan(wanted=wanted, delete=[job for job in jobs if job not in current])
    plan.delete += unwanted(current, wanted)
    plan.patch = [(job, {"spec": {"suspend": suspended}}) for job in current if job.spec.suspend != suspended]
    plan.status = _status(owner, listed, current, attempt, now)
    if plan.status["terminalState"]:
        plan.wanted = []
    return plan


def _started(owner: Untyped, listed: Sequence[Json], jobs: Sequence[Job]) -> Iterable[Json]:
    """The replicated jobs that may exist now: in order, each waits until those before it are ready."""
    in_order = (owner.spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"
    for replicated in listed:
        yield replicated
        own = _of(replicated, jobs)
        if in_order and sum(map(_is_ready, own)) < count(replicated.get("replicas"), 1):
            return


def _job(owner: Untyped, replicated: Json, index: int, attempt: int) -> Json:
    names = {
        _NAME: owner.name,
        labels.JOBSET_REPLICATED_JOB: str(replicated["name"]),
        labels.JOBSET_JOB_INDEX: str(index),
        "jobset.sigs.k8s.io/replicatedjob-replicas": str(count(replicated.get("replicas"), 1)),
        _ATTEMPT: str(attempt),
    }
    template: Json = labelled(replicated.get("template") or {}, names)
    spec: Json = dict(template.get("spec") or {})
    pods = labelled(spec.get("template") or {}, names)
    pods["spec"] = {"restartPolicy": "OnFailure", **(pods.get("spec") or {})}
    copied = {key: value for key, value in template["metadata"].items() if key in ("labels", "annotations")}
    return {
        "metadata": child_metadata(owner, f"{owner.name}-{replicated['name']}-{index}", **copied),
        "spec": {
            "completionMode": "Indexed",
            # An Indexed Job must say how many: JobSet takes its parallelism.
            "completions": count(spec.get("parallelism"), 1),
            **spec,
            "suspend": bool(owner.spec.get("suspend")),
            "template": pods,
        },
    }


def _status(owner: Untyped, listed: Sequence[Json], jobs: Sequence[Job], attempt: int, now: datetime) -> Json:
    conditions = owner.status.get("conditions") or []
    suspended = bool(owner.spec.get("suspend"))
    if suspended or has_condition(owner.status, "Suspended"):
        reason = "SuspendedJobs" if suspended else "ResumeJobs"
        conditions = with_condition(conditions, "Suspended", str(suspended), reason, now)
    status = {
        "replicatedJobsStatus": [_counts(replicated, _of(replicated, jobs)) for replicated in listed],
        "restarts": attempt,
        "conditions": conditions,
        "terminalState": "",
    }
    most = count((owner.spec.get("failurePolicy") or {}).get("maxRestarts"), 0)
    if any(is_true(job.status.conditions, "Failed") for job in jobs):
        if attempt < most:
            return {**status, "restarts": attempt + 1}
        failed = with_condition(conditions, "Failed", "True", "FailedJobs", now)
        return {**status, "terminalState": "Failed", "conditions": failed}
    if _has_succeeded(owner, listed, jobs):
        done = with_condition(conditions, "Completed", "True", "AllJobsCompleted", now)
        return {**status, "terminalState": "Completed", "conditions": done}
    return status


def _has_succeeded(owner: Untyped, listed: Sequence[Json], jobs: Sequence[Job]) -> bool:
    policy = owner.spec.get("successPolicy") or {}
    targets = policy.get("targetReplicatedJobs") or [replicated["name"] for replicated in listed]
    chosen = [replicated for replicated in listed if replicated["name"] in targets]
    total = sum(count(replicated.get("replicas"), 1) for replicated in chosen)
    done = sum(is_true(job.status.conditions, "Complete") for replicated in chosen for job in _of(replicated, jobs))
    return done > 0 if policy.get("operator") == "Any" else 0 < total <= done


def _of(replicated: Json, jobs: Iterable[Job]) -> list[Job]:
    return [job for job in jobs if job.metadata.labels.get(labels.JOBSET_REPLICATED_JOB) == replicated["name"]]


def _is_ready(job: Job) -> bool:
    return (job.status.ready or 0) + job.status.succeeded >= job.spec.parallelism


def _counts(replicated: Json, jobs: Sequence[Job]) -> Json:
    return {
        "name": replicated["name"],
        "ready": sum(_is_ready(job) and not is_over(job) for job in jobs),
        "succeeded": sum(is_true(job.status.conditions, "Complete") for job in jobs),
        "failed": sum(is_true(job.status.conditions, "Failed") for job in jobs),
        "active": sum(job.status.active > 0 for job in jobs),
        "suspended": sum(job.spec.suspend for job in jobs),
    }
