"""A small cluster for tests of answers, from plain objects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from spinney.answers.cluster import Cluster
from spinney.answers.reading import Objects, cluster_of
from spinney.api.core import Event, Node, PersistentVolume, PersistentVolumeClaim, Pod
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.kai import PodGroup, Queue, Topology
from spinney.api.meta import Object, Resource, convert
from spinney.api.podgang import PodGang
from spinney.api.policy import PodDisruptionBudget
from spinney.api.resource import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from spinney.api.scheduling import PriorityClass
from spinney.api.storage import StorageClass
from spinney.api.untyped import untyped
from spinney.kube.clock import StoppedClock
from tests import make

Json = dict[str, Any]
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
JOB = Resource("batch/v1", "Job", "jobs")
_TYPES: tuple[type[Object], ...] = (
    Pod,
    Node,
    Queue,
    PodGroup,
    PodGang,
    PodCliqueSet,
    PodClique,
    PriorityClass,
    Topology,
    PodDisruptionBudget,
    Event,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    DeviceClass,
)
_BY_KIND = {(kind.resource.api_version, kind.resource.kind): kind for kind in _TYPES}


class Scene:
    """Objects that a test puts together, and the cluster they make up."""

    def __init__(self) -> None:
        self.objects: list[Json] = []
        self.partial: tuple[str, ...] = ()

    def add(self, *objects: Json | make.Builder) -> Scene:
        """With more objects."""
        self.objects += [each.build() if isinstance(each, make.Builder) else each for each in objects]
        return self

    def nodes(self, count: int, gpus: int = 8, **labels: str) -> Scene:
        """With nodes `n0`, `n1`, …"""
        first = sum(each["kind"] == "Node" for each in self.objects)
        for number in range(first, first + count):
            self.add(make.node(f"n{number}", gpus).metadata(labels={"kubernetes.io/hostname": f"n{number}", **labels}))
        return self

    def queue(self, name: str, parent: str = "", **gpu: float) -> Scene:
        """With a queue; `gpu` are members of its share of GPUs, CPU and memory are unlimited."""
        return self.add(make.queue(name, parent).unlimited().gpu(**gpu))

    def job(self, name: str, pods: int = 1, gpus: int = 1, *, on: str = "", queue: str = "team", **group: Any) -> Scene:
        """With a Job, its PodGroup and its pods, waiting or on a node; `group` are members of the group's spec."""
        group_name = f"pg-{name}"
        of_job = owner("batch/v1", "Job", name)
        self.add(
            item("batch/v1", "Job", name).spec(parallelism=pods),
            item("scheduling.run.ai/v2alpha2", "PodGroup", group_name, of_job).spec(
                **{"minMember": pods, "queue": queue, **group}
            ),
        )
        for number in range(pods):
            self.add(self.member(f"{name}-{number}", group_name, gpus, on).metadata(ownerReferences=[of_job]))
        return self

    @staticmethod
    def member(name: str, group: str, gpus: int = 1, on: str = "") -> make.PodBuilder:
        """A pod of a group, waiting or running."""
        built = make.pod(name).scheduler("kai-scheduler").annotate("pod-group-name", group)
        built.metadata(uid=f"uid-{name}", creationTimestamp=ago(60))
        if gpus:
            built.gpus(gpus)
        if not on:
            return built.status(phase="Pending")
        ready = [{"type": "Ready", "status": "True"}]
        return built.on(on).status(phase="Running", startTime=ago(3600), conditions=ready)

    def pod(self, name: str) -> Json:
        """A pod of the scene, to change it."""
        return next(each for each in self.objects if each["kind"] == "Pod" and each["metadata"]["name"] == name)

    def cluster(self) -> Cluster:
        """The cluster, with the scheduler's plan."""
        objects = Objects()
        for item in self.objects:
            kind = _BY_KIND.get((item["apiVersion"], item["kind"]))
            resource = kind.resource if kind else Resource(item["apiVersion"], item["kind"], f"{item['kind'].lower()}s")
            objects.lists.setdefault(resource, []).append(convert(kind or untyped(resource), item))
        return cluster_of(objects, StoppedClock(NOW))


def item(version: str, kind: str, name: str, *owners: Json) -> make.Builder:
    """An object with a UID, and with owners."""
    built = make.Builder(version, kind, name, "default")
    built.metadata(uid=f"uid-{name}", creationTimestamp=ago(60))
    return built.metadata(ownerReferences=list(owners)) if owners else built


def owner(version: str, kind: str, name: str) -> Json:
    """A controller reference."""
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}


def ago(seconds: float) -> str:
    """A moment before now."""
    return (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def event(kind: str, name: str, message: str, **notes: str) -> dict[str, object]:
    """An event about an eviction."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{kind}.{name}", "namespace": "default", "annotations": notes},
        "involvedObject": {"kind": kind, "name": name, "namespace": "default", "uid": name},
        "reason": "Evict",
        "type": "Normal",
        "message": message,
        "lastTimestamp": ago(0),
    }
