"""batch: Jobs and CronJobs. Templates stay plain data: nothing in them is lost."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from spinney.api.meta import Condition, Json, Object, Resource, Struct
from spinney.api.selector import LabelSelector

VERSION = "batch/v1"


class JobSpec(Struct, frozen=True):
    """How many pods must succeed, how many run at once, and how failures count."""

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
    template: Json = {}


class UncountedPods(Struct, frozen=True):
    """UIDs of ended pods whose finalizer may still be there, so that none is counted twice."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Struct, frozen=True):
    """Counts of a Job's pods, and its outcome."""

    active: int = 0
    ready: int | None = None
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedPods = UncountedPods()
    start_time: datetime | None = None
    completion_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()


class Job(Object, frozen=True):
    """Pods that run to completion."""

    resource: ClassVar[Resource] = Resource(VERSION, "Job", "jobs")

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class CronJobSpec(Struct, frozen=True):
    """A schedule and the Job to create on it."""

    schedule: str = ""
    time_zone: str = ""
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    job_template: Json = {}
    successful_jobs_history_limit: int = 3
    failed_jobs_history_limit: int = 1


class CronJobStatus(Struct, frozen=True):
    """The running Jobs, and when the last one was created."""

    active: tuple[Json, ...] = ()
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(Object, frozen=True):
    """Creates Jobs on a schedule."""

    resource: ClassVar[Resource] = Resource(VERSION, "CronJob", "cronjobs")

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()
