"""Jobs: pods that run to completion, each counted exactly once."""

from __future__ import annotations

import asyncio

from spinney.api.batch import Job
from spinney.api.core import Pod
from spinney.api.meta import Json, Key
from spinney.api.owners import controller_of
from spinney.embedded.controllers.jobs.job_plan import FINALIZER, JobPlan, plan_job
from spinney.embedded.controllers.sets.set_plan import BY_CONTROLLER, controller_uid
from spinney.kube.client.client import Patch
from spinney.kube.controllers.controller import After, Controller, owner_key
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Runtime

_HELD = "held-for-job"


def _held_for(pod: Pod) -> tuple[str, ...]:
    owner = controller_of(pod.metadata) if FINALIZER in pod.metadata.finalizers else None
    return (f"{pod.namespace}/{owner.name}",) if owner is not None and owner.kind == "Job" else ()


class Jobs:
    """Brings every Job to its end."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._jobs = runtime.caches.of(Job)
        self._pods = runtime.caches.of(Pod)
        self._pods.index(BY_CONTROLLER, controller_uid)
        self._pods.index(_HELD, _held_for)
        self._recorder = Recorder(runtime.client, runtime.clock, "job-controller")
        self.controller = Controller("job", runtime, self._reconcile)
        self.controller.watch(self._jobs).watch(self._pods, owner_key("Job"))

    async def _reconcile(self, key: Key) -> After | None:
        job = self._jobs.get(key)
        lives = job is not None and job.metadata.deletion_timestamp is None
        # Pods of a Job that is gone, or of one of the same name before it, are held for nobody.
        held = self._pods.by(_HELD, f"{key[0]}/{key[1]}")
        orphans = [pod for pod in held if job is None or not lives or controller_uid(pod) != (job.uid,)]
        await asyncio.gather(*(self._release(pod) for pod in orphans))
        if job is None or not lives or job.spec.managed_by not in ("", "kubernetes.io/job-controller"):
            return None
        plan = plan_job(job, self._pods.by(BY_CONTROLLER, job.uid), self._clock.now())
        await self._apply(job, plan)
        return After(plan.wake) if plan.wake is not None else None

    async def _apply(self, job: Job, plan: JobPlan) -> None:
        if plan.expired:
            await self._client.delete(Job, job.key, uid=job.uid, propagation="Foreground")
            return
        # Ended pods are noted before their finalizers go, so that a crash between the two counts none twice.
        if plan.status:
            patch = {"metadata": {"uid": job.uid}, "status": plan.status}
            await self._client.patch(Job, job.key, patch, kind=Patch.STRATEGIC, subresource="status")
        await asyncio.gather(
            *(self._release(pod) for pod in plan.release),
            *(self._delete(job, pod) for pod in plan.delete),
            *(self._drop(job, pod) for pod in plan.drop),
            *(self._create(job, pod) for pod in plan.create),
        )
        for type_, reason, message in plan.events:
            self._recorder.event(job, "Warning" if type_ == "Warning" else "Normal", reason, message)

    async def _create(self, job: Job, pod: Json) -> None:
        made = await self._client.create(Pod, pod, job.namespace)
        self._recorder.event(job, "Normal", "SuccessfulCreate", f"Created pod: {made.name}")

    async def _delete(self, job: Job, pod: Pod) -> None:
        try:
            await self._client.delete(Pod, pod.key, uid=pod.uid)
        except NotFound:
            return
        self._recorder.event(job, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.name}")

    async def _drop(self, job: Job, pod: Pod) -> None:
        await self._release(pod)
        await self._delete(job, pod)

    async def _release(self, pod: Pod) -> None:
        kept = [name for name in pod.metadata.finalizers if name != FINALIZER]
        metadata = {"uid": pod.uid, "resourceVersion": pod.metadata.resource_version, "finalizers": kept}
        try:
            await self._client.patch(Pod, pod.key, {"metadata": metadata})
        except NotFound:
            return


def controller(runtime: Runtime) -> Controller:
    """The Job controller."""
    return Jobs(runtime).controller
