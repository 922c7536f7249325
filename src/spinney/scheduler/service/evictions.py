"""Evict pods through the eviction API, and record events that say for whom."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import structlog

from spinney.api import labels, reasons
from spinney.api.core import Pod
from spinney.api.kai import PodGroup
from spinney.api.meta import Json, Key, Object, ObjectMeta, OwnerReference, Resource
from spinney.api.times import rfc3339
from spinney.api.untyped import untyped
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import ApiError, ConnectionLost, NotFound, TooManyRequests
from spinney.kube.runtime import Runtime
from spinney.scheduler.plan import Decision
from spinney.scheduler.service.intentions import Intentions
from spinney.scheduler.service.saved_record import UnfinishedEvictions
from spinney.scheduler.service.shard import Shard
from spinney.scheduler.service.views import Views
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.specs import DEFAULT_GPU_MEMORY
from spinney.scheduler.state.tasks import Task

_log = structlog.get_logger("spinney.scheduler")

# Seconds between the tries of an eviction that was not answered.
_PAUSES = (0.1, 0.4)
_SERVER_ERROR = 500


class Victim(NamedTuple):
    """A pod to evict, and the event message for its gang."""

    pod: Key
    decision: Decision
    message: str
    # How many other gangs could have given way.
    others: int = 0
    # The pods that the room is for; empty where it is for nobody in particular.
    beneficiaries: tuple[Key, ...] = ()
    # What the eviction costs, and whom, as annotations.
    costs: Mapping[str, str] = MappingProxyType({})


class Evictions:
    """Evicts the victims of one beneficiary together."""

    def __init__(self, runtime: Runtime, shard: Shard, state: State, views: Views, intentions: Intentions) -> None:
        self._client = runtime.client
        self._views = views
        self._intentions = intentions
        self._state = state
        self._events = Recorder(runtime.client, runtime.clock, shard.scheduler_name)

    def intend(self, decisions: Sequence[Decision]) -> list[Victim]:
        """The pods to evict; from now on the state counts them as releasing."""
        others = self._others(decisions)
        waiting = {name: self._pods_of(name) for name in {decision.beneficiary for decision in decisions}}
        victims = [
            self._victim(decision, others.get(decision.beneficiary, 0), waiting[decision.beneficiary])
            for decision in decisions
        ]
        for victim in victims:
            self._intentions.evict(victim.pod, victim.decision.task)
        return victims

    def resumed(self, unfinished: UnfinishedEvictions) -> list[Decision]:
        """The rest of a decision that an earlier scheduler left half done, while its beneficiary still waits.

        Other victims, chosen anew, would be evicted in addition to those that are gone already.
        """
        beneficiary = self._state.jobs.get(unfinished.beneficiary)
        tasks = [task for uid in unfinished.victims if (task := self._state.tasks.get(uid)) is not None]
        running = [task for task in tasks if task.status & st.ACTIVE]
        if beneficiary is None or not beneficiary.pending or len(running) == len(unfinished.victims):
            # Nobody needs them any more, or nobody was evicted yet: what to do is decided anew.
            return []
        return [
            Decision("evict", unfinished.action, task.key, task.job.key, "", beneficiary=unfinished.beneficiary)
            for task in running
            if task.job is not None
        ]

    async def evict(self, victims: Sequence[Victim]) -> bool:
        """Evict pods one by one; after a refusal, or once nobody waits for the room, the rest keep running."""
        for number, victim in enumerate(victims):
            if not self._is_awaited(victim) or not await self._evict(victim, len(victims)):
                for kept in victims[number:]:
                    self._keep(kept.pod)
                return False
        return True

    def _is_awaited(self, victim: Victim) -> bool:
        """Whether a pod still waits for the room: users may delete all of them between a decision and its evictions.

        The state cannot tell: the next plan may be trying things on it, in its thread.
        """
        if not victim.decision.beneficiary:
            return True
        pods = map(self._views.pods.get, victim.beneficiaries)
        return any(pod and not pod.spec.node_name and pod.metadata.deletion_timestamp is None for pod in pods)

    async def _evict(self, victim: Victim, together: int) -> bool:
        pod = self._views.pods.get(victim.pod)
        if pod is None:
            return True
        body: Json = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        try:
            await self._post(pod, body)
        except NotFound:
            return True
        except TooManyRequests as error:
            self._events.event(pod, "Normal", "EvictionRefused", f"a disruption budget keeps the pod: {error}")
            return False
        except (ApiError, ConnectionLost) as error:
            _log.warning("eviction.failed", namespace=pod.namespace, name=pod.name, error=str(error))
            return False
        self._tell(pod, victim, together)
        return True

    async def _post(self, pod: Pod, body: Json) -> None:
        """Post an eviction, again where no answer says whether it happened: else its room would go to somebody else."""
        for pause in _PAUSES:
            try:
                await self._client.post(Pod, pod.key, "eviction", body)
            except (ApiError, ConnectionLost) as error:
                if isinstance(error, ApiError) and error.code < _SERVER_ERROR:
                    raise
                await asyncio.sleep(pause)
            else:
                return
            if await self._client.metadata(Pod, pod.key) is None:
                return
        await self._client.post(Pod, pod.key, "eviction", body)

    def _tell(self, pod: Pod, victim: Victim, together: int) -> None:
        """Record the eviction on the pod, its group and its owners, so that `describe` of any of them shows it."""
        group = self._views.groups.get((pod.namespace, pod.metadata.annotations.get(labels.POD_GROUP, "")))
        annotations = {**_evictor(victim.decision, together), **victim.costs}
        annotations[labels.EVICTED_OTHERS] = str(victim.others)
        owners = [*pod.metadata.owner_references, *(group.metadata.owner_references if group is not None else ())]
        about: list[Object] = [pod, *([group] if group is not None else [])]
        about += [_owner(owner, pod.namespace) for owner in {owner.uid: owner for owner in owners}.values()]
        for item in about:
            self._events.event(item, "Normal", reasons.EVICT, victim.message, annotations)

    def _keep(self, key: Key) -> None:
        pod = self._views.pods.get(key)
        if pod is not None:
            self._intentions.withdraw_eviction(key, pod.uid)

    def _others(self, decisions: Sequence[Decision]) -> dict[str, int]:
        """By beneficiary, how many gangs run that the same right would have let it evict, and that stay."""
        chosen = {decision.job for decision in decisions}
        rights = {decision.beneficiary: decision.action for decision in decisions if decision.beneficiary}
        running = [job for job in self._state.jobs.values() if job.preemptible and any(job.active)] if rights else []
        counts: dict[str, int] = {}
        for beneficiary, action in rights.items():
            other = self._state.jobs.get(beneficiary)
            if other is not None:
                counts[beneficiary] = sum(
                    job.key not in chosen and job is not other and self._may_evict(action, other, job)
                    for job in running
                )
        return counts

    def _may_evict(self, action: str, beneficiary: Job, job: Job) -> bool:
        """Whether the same right holds against a gang: its queue borrows, or in its own queue its priority is lower."""
        if action == "reclaim":
            return job.queue >= 0 and job.queue != beneficiary.queue and self._borrows(job.queue)
        if action == "preempt":
            return job.queue == beneficiary.queue and job.priority < beneficiary.priority
        return True

    def _borrows(self, queue: int) -> bool:
        held, quotas = self._state.charged[queue], self._state.queues.quota[queue]
        return any(0 <= quota < amount for amount, quota in zip(held, quotas, strict=True))

    def _victim(self, decision: Decision, others: int, beneficiaries: tuple[Key, ...]) -> Victim:
        spec = self._state.tasks[decision.task].spec
        message = f"Pod {spec.name} was evicted by {decision.action}{self._right(decision)}"
        key = (spec.namespace, spec.name)
        return Victim(key, decision, message, others, beneficiaries, self._costs(key, decision))

    def _costs(self, key: Key, decision: Decision) -> dict[str, str]:
        """What the eviction costs, and whom: read now, since later the next plan may be trying things on the state."""
        pod, other = self._views.pods.get(key), self._state.jobs.get(decision.beneficiary)
        if pod is None:
            return {}
        group = self._views.groups.get((pod.namespace, pod.metadata.annotations.get(labels.POD_GROUP, "")))
        beneficiary = self._views.groups.get((other.spec.namespace, other.spec.name)) if other is not None else None
        costs = {
            labels.EVICTED_QUEUE: group.spec.queue if group is not None else "",
            labels.EVICTED_WORKLOAD: _workload(group),
            labels.EVICTED_GPUS: f"{self._gpus(self._state.tasks[decision.task]):g}",
            labels.EVICTED_STARTED: rfc3339(pod.status.start_time) if pod.status.start_time is not None else "",
            labels.EVICTOR_QUEUE: other.spec.queue if other is not None else "",
            labels.EVICTOR_WORKLOAD: _workload(beneficiary),
        }
        return {name: value for name, value in costs.items() if value}

    def _gpus(self, task: Task) -> float:
        memory = int(self._state.nodes.gpu_memory[task.node]) if task.node >= 0 else DEFAULT_GPU_MEMORY
        return task.cls.charge(memory)[2]

    def _pods_of(self, beneficiary: str) -> tuple[Key, ...]:
        gang = self._state.jobs.get(beneficiary)
        tasks = [task for podset in gang.tasks for task in podset.values()] if gang is not None else []
        return tuple((task.spec.namespace, task.spec.name) for task in tasks if not task.status & st.GATED)

    def _right(self, decision: Decision) -> str:
        """For whom, and by which rule, a pod is evicted."""
        victim, other = self._state.jobs.get(decision.job), self._state.jobs.get(decision.beneficiary)
        if victim is None or other is None:
            return ""
        if decision.action == "reclaim":
            giver, taker = (self._state.queues.names[job.queue] for job in (victim, other))
            return f" for {other.key}: queue {giver} gives back to queue {taker} what it is owed"
        if decision.action == "preempt":
            return f" for {other.key}, which has priority {other.priority} over {victim.priority}"
        return f" for {other.key}"


def _owner(reference: OwnerReference, namespace: str) -> Object:
    """An owner as the subject of an event, from its owner reference alone."""
    # The plural is not needed: nothing is read or written there.
    kind = untyped(Resource(reference.api_version, reference.kind, reference.kind))
    return kind(metadata=ObjectMeta(name=reference.name, namespace=namespace, uid=reference.uid))


def _workload(group: PodGroup | None) -> str:
    """The workload of a group, as `apiVersion Kind namespace/name`."""
    if group is None or not group.metadata.owner_references:
        return ""
    owner = group.metadata.owner_references[0]
    return f"{owner.api_version} {owner.kind} {group.namespace}/{owner.name}"


def _evictor(decision: Decision, together: int) -> dict[str, str]:
    """Upstream's annotations about who a pod was evicted for."""
    annotations = {labels.EVICTED_PODS: str(together), labels.EVICTOR_ACTION: decision.action}
    namespace, _, name = decision.beneficiary.partition("/")
    if name:
        annotations |= {labels.EVICTOR_NAME: name, labels.EVICTOR_NAMESPACE: namespace}
    return annotations
