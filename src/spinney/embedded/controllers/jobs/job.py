"""Jobs: pods that run to completion, each counted exactly once."""

from __future__ import annotations

import asyncio
from functools import partial

from spinney.api.batch import Job
from spinney.api.core import Pod
from spinney.api.meta import Key
from spinney.api.owners import controller_of
from spinney.embedded.controllers.jobs.job_plan import JobPlan, plan_job
from spinney.embedded.controllers.jobs.job_status import FINALIZER
from spinney.embedded.controllers.writes import (
    BY_CONTROLLER,
    PodWriter,
    after,
    controller_uid,
    delete_once,
    index_key,
    patch_status,
    remove_finalizer,
    slow_start,
)
from spinney.kube.client.client import Patch
from spinney.kube.controllers.controller import After, Controller, owner_key
from spinney.kube.controllers.events import Recorder
from spinney.kube.runtime import Runtime

_BY_HOLDING_JOB = "held-for-job"


def _holding_job(pod: Pod) -> tuple[str, ...]:
    owner = controller_of(pod.metadata) if FINALIZER in pod.metadata.finalizers else None
    return (f"{pod.namespace}/{owner.name}",) if owner is not None and owner.kind == "Job" else ()


class Jobs:
    """The Job controller."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._jobs = runtime.caches.of(Job)
        self._pods = runtime.caches.of(Pod)
        self._pods.index(BY_CONTROLLER, controller_uid)
        self._pods.index(_BY_HOLDING_JOB, _holding_job)
        self._recorder = Recorder(runtime.client, runtime.clock, "job-controller")
        self._writer = PodWriter(runtime.client, self._recorder)
        self.controller = Controller("job", runtime, self._reconcile)
        self.controller.watch(self._jobs).watch(self._pods, owner_key("Job"))

    async def _reconcile(self, key: Key) -> After | None:
        job = self._jobs.get(key)
        if job is not None and job.metadata.deletion_timestamp is not None:
            job = None
        # The pods of a deleted Job, or of an earlier one of the same name, need not be counted any more.
        held = self._pods.by(_BY_HOLDING_JOB, f"{key[0]}/{key[1]}")
        orphans = [pod for pod in held if job is None or index_key(job) not in controller_uid(pod)]
        await asyncio.gather(*(self._release(pod) for pod in orphans))
        if job is None or job.spec.managed_by not in ("", "kubernetes.io/job-controller"):
            return None
        plan = plan_job(job, self._pods.by(BY_CONTROLLER, index_key(job)), self._clock.now())
        await self._apply(job, plan)
        return after(plan.wake)

    async def _apply(self, job: Job, plan: JobPlan) -> None:
        if plan.expired:
            await delete_once(self._client, job, propagation="Foreground")
            return
        # Ended pods are recorded before their finalizers go, so that a crash in between counts none twice.
        await patch_status(self._client, job, plan.status, Patch.STRATEGIC)
        await asyncio.gather(
            *(self._release(pod) for pod in plan.release),
            *(self._writer.delete(job, pod) for pod in plan.delete),
            *(self._drop(job, pod) for pod in plan.drop),
        )
        await slow_start(partial(self._writer.create, job), plan.create)
        for event in plan.events:
            self._recorder.event(job, *event)

    async def _drop(self, job: Job, pod: Pod) -> None:
        await self._release(pod)
        await self._writer.delete(job, pod)

    async def _release(self, pod: Pod) -> None:
        await remove_finalizer(self._client, pod, FINALIZER)
