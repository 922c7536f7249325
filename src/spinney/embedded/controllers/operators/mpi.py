"""Kubeflow's MPI operator: workers as pods, the launcher as a Job."""

from __future__ import annotations

from datetime import datetime

from spinney.api import labels
from spinney.api.batch import Job, JobStatus
from spinney.api.conditions import is_true
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.api.pod_state import is_finished, is_ready
from spinney.api.times import rfc3339
from spinney.api.untyped import Untyped
from spinney.embedded.controllers.operators.kubeflow import replica, training_conditions
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
)

_OPERATOR = {"training.kubeflow.org/operator-name": "mpi-operator"}
_LAUNCHER = {**_OPERATOR, labels.TRAINING_JOB_ROLE: "launcher", labels.TRAINING_REPLICA_TYPE: "launcher"}


def mpi_job(job: Untyped, children: Children, now: datetime) -> OperatorPlan:
    """What an MPIJob needs: workers that wait, and a launcher whose end is the job's."""
    policy: Json = job.spec.get("runPolicy") or {}
    if has_condition(job.status, "Succeeded", "Failed"):
        cleaned = [pod for pod in children.pods if policy.get("cleanPodPolicy") in ("Running", "All")]
        return OperatorPlan(delete=[pod for pod in cleaned if not is_finished(pod)])
    if policy.get("suspend"):
        status = {"conditions": training_conditions(job, "Suspended", now)}
        return OperatorPlan(delete=children.all(), status=status)
    roles: Json = job.spec.get("mpiReplicaSpecs") or {}
    workers = _workers(job, roles.get("Worker") or {})
    plan = OperatorPlan(wanted=[*workers], delete=unwanted(children.pods, workers))
    ready = sum(is_ready(pod) for pod in children.pods)
    waits = job.spec.get("launcherCreationPolicy") == "WaitForWorkersReady"
    if "Launcher" in roles and (children.jobs or not waits or ready >= len(workers)):
        plan.wanted.append(Child(Job, _launcher(job, roles["Launcher"], policy)))
    outcome = _outcome(children, ready, len(workers))
    plan.status = {
        "conditions": training_conditions(job, outcome, now),
        "replicaStatuses": {"Worker": {"active": ready or None}, "Launcher": _launched(children)},
        "startTime": job.status.get("startTime") or rfc3339(now),
    }
    if outcome in ("Succeeded", "Failed"):
        plan.status["completionTime"] = rfc3339(now)
    return plan


def _workers(job: Untyped, spec: Json) -> list[Child]:
    more = {**_OPERATOR, labels.TRAINING_JOB_ROLE: "worker"}
    number = count(spec.get("replicas"), 0)
    check_size(number)
    return [Child(Pod, replica(job, "Worker", index, spec, more)) for index in range(number)]


def _launcher(job: Untyped, spec: Json, policy: Json) -> Json:
    names = {labels.TRAINING_JOB_NAME: job.name, **_LAUNCHER}
    template = labelled(spec.get("template") or {}, names)
    template["spec"] = {**(template.get("spec") or {}), "restartPolicy": spec.get("restartPolicy") or "OnFailure"}
    return {
        "metadata": child_metadata(job, f"{job.name}-launcher", labels=names),
        "spec": {"template": template, "backoffLimit": count(policy.get("backoffLimit"), 6)},
    }


def _outcome(children: Children, ready: int, workers: int) -> str:
    launcher = next(iter(children.jobs), None)
    if launcher is not None and is_true(launcher.status.conditions, "Complete"):
        return "Succeeded"
    if launcher is not None and is_true(launcher.status.conditions, "Failed"):
        return "Failed"
    return "Running" if launcher is not None and launcher.status.ready and ready >= workers else ""


def _launched(children: Children) -> Json:
    status = next((job.status for job in children.jobs), JobStatus())
    return {"active": status.active or None, "succeeded": status.succeeded or None, "failed": status.failed or None}
