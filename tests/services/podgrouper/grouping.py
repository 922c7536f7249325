"""Workloads for tests of the pod grouper, and the groups they get."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from spinney.api.core import Pod
from spinney.api.meta import Json, convert
from spinney.services.podgrouper.context import Context, Settings
from spinney.services.podgrouper.grouping import Grouping
from spinney.services.podgrouper.rules import group, pod_as_owner
from tests import make

CLASSES = frozenset({"train", "build", "inference", "urgent"})


@dataclass
class Owners:
    """What a rule may look up."""

    objects: list[Json] = field(default_factory=list)
    running: list[Json] = field(default_factory=list)
    # Existing groups by name, with whether they have subgroups.
    groups: dict[str, bool] = field(default_factory=dict)

    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> Json | None:
        for document in self.objects:
            if (document["apiVersion"], document["kind"], document["metadata"]["name"]) == (api_version, kind, name):
                return document
        return None

    async def all(self, api_version: str, kind: str, labels: dict[str, str]) -> list[Json]:
        return [
            document
            for document in self.objects
            if (document["apiVersion"], document["kind"]) == (api_version, kind)
            and labels.items() <= (document["metadata"].get("labels") or {}).items()
        ]

    def priority_class_exists(self, name: str) -> bool:
        return name in CLASSES

    def pods(self, namespace: str, labels: dict[str, str]) -> list[Pod]:
        listed = [convert(Pod, pod) for pod in self.running]
        return [pod for pod in listed if labels.items() <= pod.metadata.labels.items()]

    def has_group(self, namespace: str, name: str) -> bool:
        return name in self.groups

    def group_has_subgroups(self, namespace: str, name: str) -> bool | None:
        return self.groups.get(name)


def workload(api_version: str, kind: str, spec: Json | None = None, **metadata: Any) -> Json:
    """A workload named `w` with UID `u`."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "w", "uid": "u", "namespace": "default", **metadata},
        "spec": spec or {},
    }


def member(labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **spec: Any) -> Pod:
    """A pod of a workload."""
    built = make.pod("w-0-abcde").build()
    built["metadata"].update(uid="p", labels=labels or {}, annotations=annotations or {})
    built["spec"].update(spec)
    return convert(Pod, built)


async def grouped(
    top: Json | None,
    pod: Pod | None = None,
    world: Owners | None = None,
    settings: Settings | None = None,
    *below: Json,
) -> Grouping:
    pod = pod or member()
    chain = (*below, top) if top else ()
    return await group(Context(pod, top or pod_as_owner(pod), chain, world or Owners(), settings or Settings()))


def leaves(grouping: Grouping) -> dict[str, int | None]:
    return {subgroup.name: subgroup.min_member for subgroup in grouping.subgroups}


def pytorch(workers: int = 4, **extra: Any) -> Json:
    roles = {"Master": {"replicas": 1}, "Worker": {"replicas": workers, "template": {"metadata": {}}}}
    return workload("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": roles, **extra})


RAY_CLUSTER_SPEC = {
    "headGroupSpec": {"template": {}},
    "workerGroupSpecs": [
        {"groupName": "small", "replicas": 3, "minReplicas": 2, "template": {}},
        {"replicas": 2, "numOfHosts": 2, "template": {}},
        {"groupName": "asleep", "replicas": 5, "suspended": True},
    ],
}


def lws(size: int = 5, policy: str = "", **extra: Any) -> Json:
    template: Json = {"size": size, "workerTemplate": {}}
    if policy:
        template["subGroupPolicy"] = {"subGroupSize": 2, "subGroupPolicyType": policy}
    return workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"leaderWorkerTemplate": template, **extra})


def lws_pod(worker: int, **spec: Any) -> Pod:
    document = {
        "leaderworkerset.sigs.k8s.io/group-index": "3",
        "leaderworkerset.sigs.k8s.io/worker-index": str(worker),
    }
    return member(document, **spec)


def there(api_version: str, kind: str, name: str, spec: Json | None = None, **metadata: Any) -> Json:
    """An object that a rule looks up, with its name as its UID."""
    metadata = {"name": name, "uid": name, "namespace": "default", **metadata}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec or {}}


JOBS = {"replicatedJobs": [{"name": "a", "replicas": 2, "template": {"spec": {"parallelism": 3}}}]}


GANG = {"podgroups": [{"name": "r", "minReplicas": 2, "podReferences": []}]}


CLUSTER, RUN, SET = there("ray.io/v1", "RayCluster", "c", RAY_CLUSTER_SPEC), there("batch/v1", "Job", "j"), JOBS


OBJECTS = [
    CLUSTER,
    {**CLUSTER, "apiVersion": "ray.io/v1alpha1"},
    RUN,
    there("jobset.x-k8s.io/v1alpha2", "JobSet", "s", JOBS),
    there("grove.io/v1alpha1", "PodCliqueSet", "pcs"),
    there("scheduler.grove.io/v1alpha1", "PodGang", "g", GANG),
    there("serving.knative.dev/v1", "Revision", "rev", annotations={"autoscaling.knative.dev/min-scale": "2"}),
]
