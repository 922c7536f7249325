"""apps: Deployments, ReplicaSets, StatefulSets, DaemonSets. Pod templates stay plain data: nothing in them is lost."""

from __future__ import annotations

from typing import ClassVar

from spinney.api.meta import Condition, Json, Object, Resource, Struct
from spinney.api.selector import LabelSelector

VERSION = "apps/v1"
# The annotation in which a DaemonSet counts its templates, for clients older than ControllerRevisions.
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


class SetSpec(Struct, frozen=True):
    """Selector and template of a set's pods, and how long a pod must be ready to count as available."""

    selector: LabelSelector | None = None
    template: Json = {}
    min_ready_seconds: int = 0


class ReplicaSetSpec(SetSpec, frozen=True):
    """A number of pods of one template."""

    replicas: int = 1


class SetStatus(Struct, frozen=True):
    """Counts of a set's pods, for the generation that was observed."""

    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0


class ReplicaSetStatus(SetStatus, frozen=True):
    """Counts of pods, and whether creating them fails."""

    fully_labeled_replicas: int = 0
    terminating_replicas: int | None = None
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(Object, frozen=True):
    """Interchangeable pods of one template."""

    resource: ClassVar[Resource] = Resource(VERSION, "ReplicaSet", "replicasets")

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class RollingUpdate(Struct, frozen=True):
    """How many pods more or fewer than wanted an update may have."""

    max_surge: int | str = "25%"
    max_unavailable: int | str = "25%"
    partition: int = 0


class UpdateStrategy(Struct, frozen=True):
    """How an update proceeds."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class DeploymentSpec(ReplicaSetSpec, frozen=True):
    """A number of pods of one template, and how to move to a new template."""

    progress_deadline_seconds: int = 600
    revision_history_limit: int = 10
    paused: bool = False
    strategy: UpdateStrategy = UpdateStrategy()


class DeploymentStatus(SetStatus, frozen=True):
    """Counts of pods, and the progress of an update."""

    updated_replicas: int = 0
    terminating_replicas: int | None = None
    unavailable_replicas: int = 0
    collision_count: int | None = None
    conditions: tuple[Condition, ...] = ()


class Deployment(Object, frozen=True):
    """Interchangeable pods with rolling updates."""

    resource: ClassVar[Resource] = Resource(VERSION, "Deployment", "deployments")

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ClaimRetention(Struct, frozen=True):
    """What happens to claims when pods are scaled down, or the set is deleted."""

    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


class StatefulSetSpec(ReplicaSetSpec, frozen=True):
    """A number of pods with ordinals, and their claims."""

    revision_history_limit: int = 10
    pod_management_policy: str = "OrderedReady"
    service_name: str = ""
    update_strategy: UpdateStrategy = UpdateStrategy()
    volume_claim_templates: tuple[Json, ...] = ()
    persistent_volume_claim_retention_policy: ClaimRetention = ClaimRetention()
    ordinals: Json = {}


class StatefulSetStatus(SetStatus, frozen=True):
    """Counts of pods by revision."""

    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None


class StatefulSet(Object, frozen=True):
    """Pods with stable names and claims."""

    resource: ClassVar[Resource] = Resource(VERSION, "StatefulSet", "statefulsets")

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(SetSpec, frozen=True):
    """The pod of every node, and how to move to a new template."""

    update_strategy: UpdateStrategy = UpdateStrategy()


class DaemonSetStatus(Struct, frozen=True):
    """Counts of nodes."""

    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    number_ready: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    observed_generation: int = 0
    collision_count: int | None = None


class DaemonSet(Object, frozen=True):
    """One pod per node."""

    resource: ClassVar[Resource] = Resource(VERSION, "DaemonSet", "daemonsets")

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ControllerRevision(Object, frozen=True):
    """A template that a set has or had."""

    resource: ClassVar[Resource] = Resource(VERSION, "ControllerRevision", "controllerrevisions")

    data: Json = {}
    revision: int = 0
