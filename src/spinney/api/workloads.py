"""The workload kinds that the pod grouper knows, by API version and kind."""

from __future__ import annotations

from typing import Any

from spinney.api.meta import Json

# Kinds whose pods are grouped.
GROUPED: tuple[tuple[str, str], ...] = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("kubeflow.org/v1", "TFJob"),
    ("kubeflow.org/v1", "XGBoostJob"),
    ("kubeflow.org/v1", "JAXJob"),
    ("kubeflow.org/v1", "MPIJob"),
    ("kubeflow.org/v2beta1", "MPIJob"),
    ("kubeflow.org/v1", "PyTorchJob"),
    ("kubeflow.org/v1beta1", "Notebook"),
    ("kubeflow.org/v1alpha1", "ScheduledWorkflow"),
    ("ray.io/v1", "RayCluster"),
    ("ray.io/v1alpha1", "RayCluster"),
    ("ray.io/v1", "RayJob"),
    ("ray.io/v1alpha1", "RayJob"),
    ("ray.io/v1", "RayService"),
    ("ray.io/v1alpha1", "RayService"),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    ("serving.knative.dev/v1", "Service"),
    ("amlarc.azureml.com/v1alpha1", "AmlJob"),
    ("egx.nvidia.io/v1", "SPOTRequest"),
    ("machinelearning.seldon.io/v1", "SeldonDeployment"),
    ("machinelearning.seldon.io/v1alpha2", "SeldonDeployment"),
    ("kubevirt.io/v1", "VirtualMachine"),
    ("kubevirt.io/v1", "VirtualMachineInstance"),
    ("workspace.devfile.io/v1alpha2", "DevWorkspace"),
    ("tekton.dev/v1", "PipelineRun"),
    ("tekton.dev/v1", "TaskRun"),
    ("run.ai/v1", "RunaiJob"),
    ("grove.io/v1alpha1", "PodCliqueSet"),
)
# How many replicas a workload had before it was suspended (annotation).
REPLICAS_BEFORE = "spinney.dev/replicas-before"
# Kinds that only create other workloads: each of those is one of its own.
_CREATORS = frozenset({"CronJob", "ScheduledWorkflow", "Workflow", "TrainJob", "DynamoGraphDeployment"})


def creates_workloads(kind: str) -> bool:
    """Whether objects of a kind create workloads rather than being one."""
    return kind in _CREATORS or kind.endswith("Workload")


def is_suspended(kind: str, spec: Json) -> bool:
    """Whether a workload is told to run nothing for now."""
    policy = spec.get("runPolicy")
    if spec.get("suspend") is True or (isinstance(policy, dict) and policy.get("suspend") is True):
        return True
    return "replicas" in spec and spec["replicas"] == 0 and kind not in ("Job", "CronJob")


def suspension(kind: str, suspended: bool, replicas: int = 1) -> Json:
    """The merge patch that suspends or resumes a workload; empty for kinds that know neither way."""
    if kind in ("Job", "CronJob", "RayJob", "JobSet", "RayCluster"):
        return {"spec": {"suspend": suspended}}
    if kind in ("PyTorchJob", "TFJob", "XGBoostJob", "MPIJob", "JAXJob"):
        return {"spec": {"runPolicy": {"suspend": suspended}}}
    if kind in ("Deployment", "StatefulSet", "ReplicaSet", "LeaderWorkerSet", "PodCliqueSet"):
        return {"spec": {"replicas": 0 if suspended else replicas}}
    return {}


def wanted_pods(kind: str, spec: Json) -> int:
    """How many pods a workload asks for by its own spec, for the kinds where that is one number; else 0."""
    if kind == "Job":
        parallel, completions = _number(spec.get("parallelism"), 1), spec.get("completions")
        return min(parallel, _number(completions, parallel))
    if kind in ("Deployment", "StatefulSet", "ReplicaSet"):
        return _number(spec.get("replicas"), 1)
    if kind == "LeaderWorkerSet":
        template = spec.get("leaderWorkerTemplate") or {}
        return _number(spec.get("replicas"), 1) * _number(template.get("size"), 1)
    groups = next((value for key, value in spec.items() if key.endswith("ReplicaSpecs")), None)
    if isinstance(groups, dict):
        return sum(_number((group or {}).get("replicas"), 1) for group in groups.values())
    return 0


def _number(value: Any, default: int) -> int:
    return value if isinstance(value, int) else default
