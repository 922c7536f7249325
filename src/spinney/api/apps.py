"""apps: the built-in workloads."""

from __future__ import annotations

from typing import ClassVar

from spinney.api.meta import Condition, Object, Resource, Struct
from spinney.api.pod import PodTemplate
from spinney.api.selector import LabelSelector

VERSION = "apps/v1"
# The annotation in which a DaemonSet counts its templates, for clients older than ControllerRevisions.
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


class WorkloadSpec(Struct, frozen=True):
    """How many pods, chosen how, made from what."""

    replicas: int = 1
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    service_name: str = ""


class WorkloadStatus(Struct, frozen=True):
    """How many pods there are, in which state."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0
    unavailable_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class Deployment(Object, frozen=True):
    """Interchangeable pods with rolling updates."""

    resource: ClassVar[Resource] = Resource(VERSION, "Deployment", "deployments")

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class ReplicaSet(Object, frozen=True):
    """Interchangeable pods of one revision."""

    resource: ClassVar[Resource] = Resource(VERSION, "ReplicaSet", "replicasets")

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class StatefulSet(Object, frozen=True):
    """Pods with names and volumes of their own."""

    resource: ClassVar[Resource] = Resource(VERSION, "StatefulSet", "statefulsets")

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class DaemonSetStatus(Struct, frozen=True):
    """On how many nodes it runs."""

    observed_generation: int = 0
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    number_ready: int = 0
    number_available: int = 0


class DaemonSet(Object, frozen=True):
    """One pod per node."""

    resource: ClassVar[Resource] = Resource(VERSION, "DaemonSet", "daemonsets")

    spec: WorkloadSpec = WorkloadSpec()
    status: DaemonSetStatus = DaemonSetStatus()
