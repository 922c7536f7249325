"""Kubeflow's training operator: PyTorchJob, TFJob, XGBoostJob and JAXJob, as pods `<job>-<role>-<index>`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.api.pod_state import is_active, is_finished
from spinney.api.times import rfc3339
from spinney.api.untyped import Untyped
from spinney.embedded.controllers.operators.plan import (
    Child,
    Children,
    OperatorPlan,
    check_size,
    count,
    exit_code,
    has_condition,
    restarts,
    unwanted,
    with_condition,
)
from spinney.embedded.controllers.pods.replicas import from_template

# Roles whose first pod decides whether the job has succeeded; without one, all workers do.
_CHIEFS = ("Chief", "Master")
# Exit codes from here on are worth another try under restart policy ExitCode.
_FIRST_RETRYABLE = 128
_NO_EXIT_CODE = "OnFailure"


@dataclass(frozen=True)
class Training:
    """The rule of one kind: where its roles are described, and which operator its pods name."""

    roles: str
    operator: str

    def __call__(self, job: Untyped, children: Children, now: datetime) -> OperatorPlan:
        """What a training job needs."""
        roles: Json = job.spec.get(self.roles) or {}
        policy: Json = job.spec.get("runPolicy") or {}
        check_size(sum(count(spec.get("replicas"), 1) for spec in roles.values()))
        pods = [Child(Pod, body) for role in roles for body in self._pods(job, role, roles[role])]
        if has_condition(job.status, "Succeeded", "Failed"):
            return OperatorPlan(delete=[*_cleaned(policy, children.pods)])
        if policy.get("suspend"):
            status = {"conditions": training_conditions(job, "Suspended", now)}
            return OperatorPlan(delete=list(children.pods), status=status)
        plan = OperatorPlan(wanted=pods, delete=unwanted(children.pods, pods))
        plan.delete += [pod for pod in children.pods if _is_retried(pod, roles)]
        deleted = {pod.uid for pod in plan.delete}
        outcome = _outcome(job, roles, [pod for pod in children.pods if pod.uid not in deleted])
        plan.status = {
            "conditions": training_conditions(job, outcome, now),
            "replicaStatuses": {role: _counts(job, role, children.pods) for role in roles},
            "startTime": job.status.get("startTime") or rfc3339(now),
        }
        if outcome in ("Succeeded", "Failed"):
            plan.wanted = []
            plan.status["completionTime"] = rfc3339(now)
        return plan

    def _pods(self, job: Untyped, role: str, spec: Json) -> list[Json]:
        return [
            replica(job, role, index, spec, {"training.kubeflow.org/operator-name": self.operator})
            for index in range(count(spec.get("replicas"), 1))
        ]


def replica(job: Untyped, role: str, index: int, spec: Json, more: Mapping[str, str]) -> Json:
    """The pod of one replica of a role."""
    pod = from_template(job, spec.get("template") or {})
    pod["metadata"]["name"] = f"{job.name}-{role.lower()}-{index}"
    pod["metadata"]["labels"] |= {
        labels.TRAINING_JOB_NAME: job.name,
        labels.TRAINING_REPLICA_TYPE: role.lower(),
        labels.TRAINING_REPLICA_INDEX: str(index),
        **({labels.TRAINING_JOB_ROLE: "master"} if role in _CHIEFS else {}),
        **more,
    }
    policy = spec.get("restartPolicy") or _NO_EXIT_CODE
    # The operator itself restarts by exit code: the kubelet must not.
    pod["spec"]["restartPolicy"] = "Never" if policy == "ExitCode" else policy
    return pod


def training_conditions(job: Untyped, outcome: str, now: datetime) -> list[Json]:
    """Conditions as Kubeflow's operators write them: the last is the state that `kubectl get` shows."""
    kind = type(job).resource.kind
    conditions: list[Json] = job.status.get("conditions") or []
    conditions = with_condition(conditions, "Created", "True", f"{kind}Created", now)
    ends = outcome in ("Succeeded", "Failed", "Suspended")
    if ends and has_condition({"conditions": conditions}, "Running"):
        conditions = with_condition(conditions, "Running", "False", f"{kind}{outcome}", now)
    if outcome == "Running" and has_condition({"conditions": conditions}, "Suspended"):
        conditions = with_condition(conditions, "Suspended", "False", f"{kind}Resumed", now)
    return with_condition(conditions, outcome, "True", f"{kind}{outcome}", now) if outcome else conditions


def _outcome(job: Untyped, roles: Json, pods: Sequence[Pod]) -> str:
    """The state of a job; empty while no pod runs."""
    policy: Json = job.spec.get("runPolicy") or {}
    limit = policy.get("backoffLimit")
    if any(pod.status.phase == "Failed" and pod.metadata.deletion_timestamp is None for pod in pods):
        return "Failed"
    if limit is not None and restarts(pods) > int(limit):
        return "Failed"
    if _has_succeeded(job, roles, pods):
        return "Succeeded"
    chief = next((f"{job.name}-{role.lower()}-0" for role in _CHIEFS if role in roles), "")
    running = [pod.name for pod in pods if pod.status.phase == "Running"]
    return "Running" if (chief in running if chief else running) else ""


def _has_succeeded(job: Untyped, roles: Json, pods: Sequence[Pod]) -> bool:
    done = {pod.name for pod in pods if pod.status.phase == "Succeeded"}
    chief = next((role for role in _CHIEFS if role in roles), "")
    if chief:
        return f"{job.name}-{chief.lower()}-0" in done
    workers = count((roles.get("Worker") or {}).get("replicas"), 1)
    return all(f"{job.name}-worker-{index}" in done for index in range(workers))


def _is_retried(pod: Pod, roles: Json) -> bool:
    """Whether a failed pod is deleted to be created again, as restart policy ExitCode says."""
    kind = pod.metadata.labels.get(labels.TRAINING_REPLICA_TYPE, "")
    policy = next((spec.get("restartPolicy") for role, spec in roles.items() if role.lower() == kind), "")
    return pod.status.phase == "Failed" and policy == "ExitCode" and exit_code(pod) >= _FIRST_RETRYABLE


def _counts(job: Untyped, role: str, pods: Sequence[Pod]) -> Json:
    own = [pod for pod in pods if pod.metadata.labels.get(labels.TRAINING_REPLICA_TYPE) == role.lower()]
    counts = {
        "active": sum(is_active(pod) for pod in own),
        "succeeded": sum(pod.status.phase == "Succeeded" for pod in own),
        "failed": sum(pod.status.phase == "Failed" for pod in own),
    }
    # None removes a count that was there.
    return {name: number or None for name, number in counts.items()}


def _cleaned(policy: Json, pods: Sequence[Pod]) -> list[Pod]:
    """The pods of a finished job that its cleanPodPolicy deletes."""
    which = policy.get("cleanPodPolicy") or "None"
    return [pod for pod in pods if which == "All" or (which == "Running" and not is_finished(pod))]
