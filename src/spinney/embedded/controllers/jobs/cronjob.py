"""CronJobs: a Job at every scheduled time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spinney.api import cron
from spinney.api.batch import CronJob, Job
from spinney.api.conditions import is_true
from spinney.api.meta import Json, Key
from spinney.api.owners import controller_reference
from spinney.api.times import rfc3339
from spinney.embedded.controllers.jobs.job_status import is_over
from spinney.embedded.controllers.writes import (
    BY_CONTROLLER,
    Event,
    after,
    controller_uid,
    create_once,
    delete_once,
    index_key,
    patch_status,
)
from spinney.kube.controllers.controller import After, Controller, owner_key
from spinney.kube.controllers.events import Recorder
from spinney.kube.runtime import Runtime

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
# Look back over so many missed times; only the last of them gets a Job.
_MOST_MISSED = 100


@dataclass
class CronPlan:
    """The wanted changes."""

    create: Json | None = None
    delete: list[Job] = field(default_factory=list)
    status: Json = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    wake: float | None = None


def plan_cronjob(cronjob: CronJob, jobs: list[Job], now: datetime) -> CronPlan:
    """What a CronJob needs, given its Jobs."""
    plan = CronPlan()
    active = [job for job in jobs if not is_over(job)]
    _prune(cronjob, jobs, plan)
    try:
        schedule, zone = cron.parse(cronjob.spec.schedule), _zone(cronjob.spec.time_zone)
    except (cron.CronError, ZoneInfoNotFoundError) as error:
        plan.events.append(("Warning", "UnparseableSchedule", str(error)))
        return plan
    due = _last_due(cronjob, schedule, zone, now)
    if due is not None and not cronjob.spec.suspend:
        _start(cronjob, active, due, plan)
    upcoming = schedule.after(now, zone)
    if upcoming is not None and not cronjob.spec.suspend:
        plan.wake = (upcoming - now).total_seconds()
    _write_active(cronjob, active, plan)
    return plan


def _last_due(
    cronjob: CronJob, schedule: cron.Schedule | cron.Interval, zone: tzinfo, now: datetime
) -> datetime | None:
    """The latest scheduled time that has passed without a Job."""
    since = cronjob.status.last_schedule_time or cronjob.metadata.creation_timestamp or now
    deadline = cronjob.spec.starting_deadline_seconds
    # A longer deadline may begin at no date.
    if deadline is not None and deadline < (now - since).total_seconds():
        since = now - timedelta(seconds=deadline)
    last = None
    for _ in range(_MOST_MISSED):
        scheduled = schedule.after(last or since, zone)
        if scheduled is None or scheduled > now:
            break
        last = scheduled
    return last


def _start(cronjob: CronJob, active: list[Job], due: datetime, plan: CronPlan) -> None:
    if active and cronjob.spec.concurrency_policy == "Forbid":
        message = "Not starting job because prior execution is running and concurrency policy is Forbid"
        plan.events.append(("Normal", "JobAlreadyActive", message))
        return
    if cronjob.spec.concurrency_policy == "Replace":
        plan.delete += active
        active.clear()
    template = cronjob.spec.job_template
    metadata = template.get("metadata") or {}
    plan.create = {
        "metadata": {
            "name": f"{cronjob.name}-{int(due.timestamp()) // 60}",
            "labels": metadata.get("labels") or {},
            "annotations": {**(metadata.get("annotations") or {}), SCHEDULED_AT: rfc3339(due)},
            "ownerReferences": [controller_reference(cronjob)],
        },
        "spec": template.get("spec") or {},
    }
    plan.status["lastScheduleTime"] = rfc3339(due)


def _prune(cronjob: CronJob, jobs: list[Job], plan: CronPlan) -> None:
    """Delete finished Jobs beyond the history limits."""
    for outcome, limit in (
        ("Complete", cronjob.spec.successful_jobs_history_limit),
        ("Failed", cronjob.spec.failed_jobs_history_limit),
    ):
        ended = [job for job in jobs if is_true(job.status.conditions, outcome)]
        ended.sort(key=lambda job: (job.status.start_time or datetime.min.replace(tzinfo=UTC), job.name))
        plan.delete += ended[: max(0, len(ended) - limit)]
    done = [job.status.completion_time for job in jobs if job.status.completion_time]
    newest = max(done, default=None)
    last = cronjob.status.last_successful_time
    if newest is not None and (last is None or newest > last):
        plan.status["lastSuccessfulTime"] = rfc3339(newest)


def _write_active(cronjob: CronJob, active: list[Job], plan: CronPlan) -> None:
    wanted = {job.uid for job in active}
    have = {reference.get("uid") for reference in cronjob.status.active}
    if wanted != have:
        plan.status["active"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "namespace": job.namespace, "name": job.name, "uid": job.uid}
            for job in active
        ]


def _zone(name: str) -> tzinfo:
    return ZoneInfo(name) if name else UTC


class CronJobs:
    """The CronJob controller."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._cronjobs = runtime.caches.of(CronJob)
        self._jobs = runtime.caches.of(Job)
        self._jobs.index(BY_CONTROLLER, controller_uid)
        self._recorder = Recorder(runtime.client, runtime.clock, "cronjob-controller")
        self.controller = Controller("cronjob", runtime, self._reconcile)
        self.controller.watch(self._cronjobs).watch(self._jobs, owner_key("CronJob"))

    async def _reconcile(self, key: Key) -> After | None:
        cronjob = self._cronjobs.get(key)
        if cronjob is None or cronjob.metadata.deletion_timestamp is not None:
            return None
        plan = plan_cronjob(cronjob, self._jobs.by(BY_CONTROLLER, index_key(cronjob)), self._clock.now())
        for job in plan.delete:
            await delete_once(self._client, job, propagation="Background")
        if plan.create is not None and await create_once(self._client, Job, plan.create, cronjob.namespace):
            message = f"Created job {plan.create['metadata']['name']}"
            self._recorder.event(cronjob, "Normal", "SuccessfulCreate", message)
        await patch_status(self._client, cronjob, plan.status)
        for event in plan.events:
            self._recorder.event(cronjob, *event)
        return after(plan.wake)
