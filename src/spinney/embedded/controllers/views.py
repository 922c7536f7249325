"""What these controllers read of workloads; pod templates stay plain data, so that nothing in them is lost."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import msgspec

from spinney.api.meta import Condition, Json, Object, Resource, Struct
from spinney.api.selector import LabelSelector


class JobSpec(Struct, frozen=True):
    """How many pods, how often, how long."""

    parallelism: int = 1
    completions: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int = 6
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    ttl_seconds_after_finished: int | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    selector: LabelSelector | None = None
    pod_failure_policy: Json | None = None
    pod_replacement_policy: str = "TerminatingOrFailed"
    success_policy: Json | None = None
    managed_by: str = ""
    template: Json = msgspec.field(default_factory=dict)


class Uncounted(Struct, frozen=True):
    """UIDs of pods that have ended and whose finalizer may not be gone yet, so that none is counted twice."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Struct, frozen=True):
    """How a job does."""

    active: int = 0
    ready: int | None = None
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: Uncounted = Uncounted()
    start_time: datetime | None = None
    completion_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()


class Job(Object, frozen=True):
    """Pods that run to completion."""

    resource: ClassVar[Resource] = Resource("batch/v1", "Job", "jobs")

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class CronJobSpec(Struct, frozen=True):
    """When to make which job."""

    schedule: str = ""
    time_zone: str = ""
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    job_template: Json = msgspec.field(default_factory=dict)
    successful_jobs_history_limit: int = 3
    failed_jobs_history_limit: int = 1


class CronJobStatus(Struct, frozen=True):
    """Which jobs run, and when the last was made."""

    active: tuple[Json, ...] = ()
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(Object, frozen=True):
    """Jobs by the clock."""

    resource: ClassVar[Resource] = Resource("batch/v1", "CronJob", "cronjobs")

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


class SetSpec(Struct, frozen=True):
    """Which pods belong to a set, what new ones are made from, and how long they must be ready to count."""

    selector: LabelSelector | None = None
    template: Json = msgspec.field(default_factory=dict)
    min_ready_seconds: int = 0


class SetStatus(Struct, frozen=True):
    """How many pods a set has, and what of its spec that answers to."""

    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0


class ReplicaSetSpec(SetSpec, frozen=True):
    """How many pods of which template."""

    replicas: int = 1


class ReplicaSetStatus(SetStatus, frozen=True):
    """How many pods there are."""

    fully_labeled_replicas: int = 0
    terminating_replicas: int | None = None
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(Object, frozen=True):
    """So many equal pods."""

    resource: ClassVar[Resource] = Resource("apps/v1", "ReplicaSet", "replicasets")

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


class DeploymentSpec(SetSpec, frozen=True):
    """How many pods of which template, and how to move to a new template."""

    replicas: int = 1
    progress_deadline_seconds: int = 600
    revision_history_limit: int = 10
    paused: bool = False
    strategy: UpdateStrategy = UpdateStrategy()


class DeploymentStatus(SetStatus, frozen=True):
    """How far an update is."""

    updated_replicas: int = 0
    terminating_replicas: int | None = None
    unavailable_replicas: int = 0
    collision_count: int | None = None
    conditions: tuple[Condition, ...] = ()


class Deployment(Object, frozen=True):
    """Equal pods that are updated gradually."""

    resource: ClassVar[Resource] = Resource("apps/v1", "Deployment", "deployments")

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ClaimRetention(Struct, frozen=True):
    """What becomes of claims when pods or the whole set go."""

    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


class StatefulSetSpec(SetSpec, frozen=True):
    """How many pods with identities."""

    replicas: int = 1
    revision_history_limit: int = 10
    pod_management_policy: str = "OrderedReady"
    service_name: str = ""
    update_strategy: UpdateStrategy = UpdateStrategy()
    volume_claim_templates: tuple[Json, ...] = ()
    persistent_volume_claim_retention_policy: ClaimRetention = ClaimRetention()
    ordinals: Json = msgspec.field(default_factory=dict)


class StatefulSetStatus(SetStatus, frozen=True):
    """How many of the pods are there, and of which revision."""

    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None


class StatefulSet(Object, frozen=True):
    """Pods with names that stay."""

    resource: ClassVar[Resource] = Resource("apps/v1", "StatefulSet", "statefulsets")

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(SetSpec, frozen=True):
    """Which pods every node gets."""

    update_strategy: UpdateStrategy = UpdateStrategy()


class DaemonSetStatus(Struct, frozen=True):
    """On how many nodes they are."""

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
    """A pod on every node."""

    resource: ClassVar[Resource] = Resource("apps/v1", "DaemonSet", "daemonsets")

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ControllerRevision(Object, frozen=True):
    """A template that a set has or had."""

    resource: ClassVar[Resource] = Resource("apps/v1", "ControllerRevision", "controllerrevisions")

    data: Json = msgspec.field(default_factory=dict)
    revision: int = 0
