"""batch: jobs that end."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from spinney.api.meta import Condition, Object, ObjectMeta, Resource, Struct
from spinney.api.pod import PodTemplate
from spinney.api.selector import LabelSelector

VERSION = "batch/v1"


class JobSpec(Struct, frozen=True):
    """How many pods must succeed, how many run at once."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = ""
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    selector: LabelSelector | None = None
    manual_selector: bool = False
    template: PodTemplate = PodTemplate()


class JobStatus(Struct, frozen=True):
    """How far a job is."""

    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    start_time: datetime | None = None
    completion_time: datetime | None = None
    completed_indexes: str = ""
    conditions: tuple[Condition, ...] = ()


class Job(Object, frozen=True):
    """Pods that run to completion."""

    resource: ClassVar[Resource] = Resource(VERSION, "Job", "jobs")

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplate(Struct, frozen=True):
    """What a CronJob makes its jobs from."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(Struct, frozen=True):
    """When, and what."""

    schedule: str = ""
    time_zone: str = ""
    suspend: bool = False
    concurrency_policy: str = ""
    job_template: JobTemplate = JobTemplate()


class CronJob(Object, frozen=True):
    """Makes jobs on a schedule."""

    resource: ClassVar[Resource] = Resource(VERSION, "CronJob", "cronjobs")

    spec: CronJobSpec = CronJobSpec()
