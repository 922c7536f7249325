"""Place kube-scheduler's pods where no kube-scheduler runs: single pods, and gangs by their Workload.

They are gangs of a hidden queue without limits that takes no part in reclaim, and they are
bound directly. A Lease says who serves these pods: a real kube-scheduler that is started against the cluster and the
stand-in never both act.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import structlog

from spinney.api.core import Pod
from spinney.api.meta import Key
from spinney.api.scheduling import WorkloadV1alpha1
from spinney.kube.caches.cache import Change
from spinney.kube.controllers.leader import Election, LeaseLost
from spinney.kube.runtime import Runtime
from spinney.scheduler.intake import cluster_objects
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import UNLIMITED, JobSpec, QueueSpec, Share, gang

_log = structlog.get_logger("spinney.scheduler")

SCHEDULER_NAME = "default-scheduler"
# A name that no Queue object can have.
QUEUE = ":kube-scheduler"
_EVERYTHING = Share(UNLIMITED, UNLIMITED, 1.0)
_BY_GANG = "standin/gang"


def gang_of(pod: Pod) -> str:
    """The gang of a pod for kube-scheduler: its group of a Workload, or the pod alone."""
    link = pod.spec.workload_ref
    if link is None:
        return f"{pod.namespace}/:pod/{pod.name}"
    return f"{pod.namespace}/:workload/{link.name}/{link.pod_group}/{link.pod_group_replica_key}"


def is_stand_in(job: str) -> bool:
    """Whether a gang belongs to the stand-in."""
    return "/:" in job


class StandIn:
    """Describes kube-scheduler's pods to the state while the lease is held."""

    def __init__(self, runtime: Runtime, state: State, mark: Callable[[Key], None]) -> None:
        self._state = state
        self._mark = mark
        self._pods = runtime.caches.of(Pod)
        self._workloads = runtime.caches.of(WorkloadV1alpha1)
        self._pods.index(_BY_GANG, lambda pod: (gang_of(pod),) if self.claims(pod) else ())
        self._workloads.on_change(self._workload_changed)
        identity = f"spinney-{runtime.client.chance.uid()}"
        self._election = Election(runtime.client, runtime.clock, "kube-scheduler", "kube-system", identity=identity)
        self.acts = False

    async def run(self) -> None:
        """Serve kube-scheduler's pods while the lease is held."""
        while True:
            try:
                await self._election.lead(self._lead)
            except LeaseLost:
                _log.info("standin.lost_lease")

    async def _lead(self) -> None:
        self._state.set_queue(QueueSpec(QUEUE, cpu=_EVERYTHING, memory=_EVERYTHING, gpu=_EVERYTHING))
        self.acts = True
        self._mark_all()
        try:
            await asyncio.Event().wait()
        finally:
            self.acts = False
            self._mark_all()

    def claims(self, pod: Pod) -> bool:
        """Whether kube-scheduler would place the pod."""
        return pod.spec.scheduler_name in ("", SCHEDULER_NAME)

    def describe(self, pod: Pod) -> str:
        """Put a pod's gang into the state and return its key; empty if the pod is not served."""
        if not self.acts or not self.claims(pod):
            return ""
        minimum = self._minimum(pod)
        if minimum is None:
            # kube-scheduler holds a pod back until its Workload is there.
            return ""
        key = gang_of(pod)
        job = self._state.jobs.get(key)
        created = cluster_objects.timestamp(pod.metadata.creation_timestamp)
        self._state.set_job(
            JobSpec(
                key=key,
                queue=QUEUE,
                priority=pod.spec.priority or 0,
                preemptible=False,
                evicts=False,
                created=min(created, job.spec.created) if job is not None else created,
                tree=gang(minimum),
                name=pod.name,
                namespace=pod.namespace,
            )
        )
        return key

    def forget(self, job: str) -> None:
        """Drop a gang whose last pod was deleted."""
        if is_stand_in(job) and not self._pods.by(_BY_GANG, job):
            self._state.drop_job(job)

    def _minimum(self, pod: Pod) -> int | None:
        link = pod.spec.workload_ref
        if link is None:
            return 1
        workload = self._workloads.get((pod.namespace, link.name))
        groups = workload.spec.pod_groups if workload is not None else ()
        for group in groups:
            if group.name == link.pod_group:
                return group.policy.gang.min_count if group.policy.gang is not None else 1
        return None

    def _workload_changed(self, change: Change[WorkloadV1alpha1]) -> None:
        workload = change.object
        self._mark_these(
            pod
            for pod in self._pods
            if pod.namespace == workload.namespace
            and pod.spec.workload_ref is not None
            and pod.spec.workload_ref.name == workload.name
        )

    def _mark_all(self) -> None:
        self._mark_these(pod for pod in self._pods if self.claims(pod))

    def _mark_these(self, pods: Iterable[Pod]) -> None:
        for pod in list(pods):
            self._mark((pod.namespace, pod.name))
