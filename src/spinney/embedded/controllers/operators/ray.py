"""KubeRay: RayClusters as a head and workers, and RayJobs and RayServices, which have a RayCluster each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from spinney.api import labels
from spinney.api.batch import Job
from spinney.api.conditions import is_true
from spinney.api.core import Pod
from spinney.api.meta import Json, Object
from spinney.api.pod_state import is_finished, is_ready
from spinney.api.times import rfc3339
from spinney.api.untyped import Untyped
from spinney.embedded.controllers.operators.plan import (
    Child,
    Children,
    OperatorPlan,
    RayCluster,
    check_size,
    child_metadata,
    count,
    unwanted,
    with_condition,
)
from spinney.embedded.controllers.pods.replicas import from_template

_HEAD = "headgroup"
_SIMULATION = "spinney.dev/"
_ENDED = {"Complete": "SUCCEEDED", "Failed": "FAILED"}


def ray_cluster(cluster: Untyped, children: Children, now: datetime) -> OperatorPlan:
    """What a RayCluster needs: one head, and the workers of each group; ended pods are replaced."""
    wanted = [] if cluster.spec.get("suspend") else [Child(Pod, body) for body in _pods(cluster)]
    gone = [pod for pod in children.pods if is_finished(pod)]
    plan = OperatorPlan(wanted=wanted, delete=[*gone, *unwanted(children.pods, wanted)])
    workers = [pod for pod in children.pods if pod.metadata.labels.get(labels.RAY_NODE_TYPE) == "worker"]
    heads = [pod for pod in children.pods if pod.metadata.labels.get(labels.RAY_NODE_TYPE) == "head"]
    desired, ready = max(len(wanted) - 1, 0), sum(is_ready(pod) for pod in workers)
    head_ready = any(is_ready(pod) for pod in heads)
    is_provisioned = bool(wanted) and head_ready and ready >= desired
    conditions = cluster.status.get("conditions") or []
    reason = "HeadPodRunningAndReady" if head_ready else "HeadPodNotReady"
    conditions = with_condition(conditions, "HeadPodReady", str(head_ready), reason, now)
    if is_provisioned:
        conditions = with_condition(conditions, "RayClusterProvisioned", "True", "AllPodRunningAndReadyFirstTime", now)
    state = "suspended" if not wanted else "ready" if is_provisioned else cluster.status.get("state")
    plan.status = {
        "state": state,
        "desiredWorkerReplicas": desired,
        "availableWorkerReplicas": len([pod for pod in workers if pod.status.phase == "Running"]),
        "readyWorkerReplicas": ready,
        "head": {"podName": f"{cluster.name}-head", "serviceName": f"{cluster.name}-head-svc"},
        "conditions": conditions,
    }
    return plan


def _pods(cluster: Untyped) -> Iterator[Json]:
    groups = [group for group in cluster.spec.get("workerGroupSpecs") or () if not group.get("suspend")]
    check_size(sum(map(_hosts, groups)))
    head = cluster.spec.get("headGroupSpec") or {}
    yield _pod(cluster, head, f"{cluster.name}-head", "head", _HEAD)
    for group in groups:
        name = str(group.get("groupName") or "workers")
        for index in range(_hosts(group)):
            yield _pod(cluster, group, f"{cluster.name}-{name}-worker-{index}", "worker", name)


def _hosts(group: Json) -> int:
    return count(group.get("replicas"), count(group.get("minReplicas"), 0)) * count(group.get("numOfHosts"), 1)


def _pod(cluster: Untyped, group: Json, name: str, role: str, group_name: str) -> Json:
    pod = from_template(cluster, group.get("template") or {})
    pod["metadata"]["name"] = name
    pod["metadata"]["labels"] |= {
        "ray.io/cluster": cluster.name,
        "ray.io/is-ray-node": "yes",
        "ray.io/identifier": f"{cluster.name}-{role}",
        labels.RAY_NODE_TYPE: role,
        labels.RAY_GROUP: group_name,
        # KubeRay's gang labels and the queue of the cluster are those of its pods.
        **{key: value for key, value in cluster.metadata.labels.items() if key == labels.QUEUE},
    }
    return pod


def ray_job(job: Untyped, children: Children, now: datetime) -> OperatorPlan:
    """What a RayJob needs: a RayCluster, then the Job that submits; its end is the RayJob's."""
    name = str(job.status.get("rayClusterName") or f"{job.name}-{job.uid[:5]}")
    deployment = job.status.get("jobDeploymentStatus")
    if deployment in _ENDED:
        clusters: list[Object] = [*children.clusters] if job.spec.get("shutdownAfterJobFinishes") else []
        return OperatorPlan(delete=clusters)
    if job.spec.get("suspend"):
        status = {"jobDeploymentStatus": "Suspended", "jobStatus": None, "rayClusterName": None}
        return OperatorPlan(delete=children.all(), status=status)
    cluster = _cluster(job, name, job.spec.get("rayClusterSpec") or {})
    plan = OperatorPlan(wanted=[Child(RayCluster, cluster)])
    live = next(iter(children.clusters), None)
    if children.jobs or (live is not None and live.status.get("state") == "ready"):
        plan.wanted.append(Child(Job, _submitter(job)))
    state = _state(children)
    plan.status = {
        "rayClusterName": name,
        "jobDeploymentStatus": state,
        "jobStatus": _ENDED.get(state) or ("RUNNING" if state == "Running" else None),
        "startTime": job.status.get("startTime") or rfc3339(now),
        "rayClusterStatus": {"state": live.status.get("state")} if live is not None else None,
    }
    if state in _ENDED:
        plan.wanted = []
        plan.status["endTime"] = rfc3339(now)
    return plan


def _state(children: Children) -> str:
    submitter = next(iter(children.jobs), None)
    if submitter is None:
        return "Initializing"
    for outcome in _ENDED:
        if is_true(submitter.status.conditions, outcome):
            return outcome
    return "Running"


def _submitter(job: Untyped) -> Json:
    """The Job that submits: `sleep N` as the entry point, or annotations of the RayJob, say how long it runs."""
    head = (((job.spec.get("rayClusterSpec") or {}).get("headGroupSpec") or {}).get("template") or {}).get("spec") or {}
    image = next((container.get("image") for container in head.get("containers") or ()), None) or "rayproject/ray"
    command = ["sh", "-c", str(job.spec.get("entrypoint") or "")]
    default = {"spec": {"containers": [{"name": "ray-job-submitter", "image": image, "command": command}]}}
    template: Json = job.spec.get("submitterPodTemplate") or default
    script = {key: value for key, value in job.metadata.annotations.items() if key.startswith(_SIMULATION)}
    metadata = template.get("metadata") or {}
    annotations = {**script, **(metadata.get("annotations") or {})}
    spec = {"restartPolicy": "Never", **(template.get("spec") or {})}
    return {
        "metadata": child_metadata(job, job.name, labels={"ray.io/originated-from-cr-name": job.name}),
        "spec": {
            "backoffLimit": count((job.spec.get("submitterConfig") or {}).get("backoffLimit"), 2),
            "template": {"metadata": {**metadata, "annotations": annotations}, "spec": spec},
        },
    }


def ray_service(service: Untyped, children: Children, now: datetime) -> OperatorPlan:
    """What a RayService needs: a RayCluster; it serves once that is ready."""
    active = service.status.get("activeServiceStatus") or {}
    name = str(active.get("rayClusterName") or f"{service.name}-{service.uid[:5]}")
    plan = OperatorPlan(wanted=[Child(RayCluster, _cluster(service, name, service.spec.get("rayClusterConfig") or {}))])
    ready = any(cluster.status.get("state") == "ready" for cluster in children.clusters)
    conditions = service.status.get("conditions") or []
    reason = "NonZeroServeEndpoints" if ready else "Initializing"
    plan.status = {
        "activeServiceStatus": {"rayClusterName": name},
        "serviceStatus": "Running" if ready else "",
        "conditions": with_condition(conditions, "Ready", str(ready), reason, now),
    }
    return plan


def _cluster(owner: Untyped, name: str, spec: Json) -> Json:
    own_labels = {**owner.metadata.labels, "ray.io/originated-from-cr-name": owner.name}
    return {"metadata": child_metadata(owner, name, labels=own_labels), "spec": spec}
