"""ReplicaSets: the wanted number of pods of one template."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from spinney.api.apps import ReplicaSet
from spinney.api.conditions import find
from spinney.api.core import Pod
from spinney.api.meta import Json, Key
from spinney.api.owners import controller_of, controller_reference
from spinney.api.pod_state import is_active, is_finished, is_ready
from spinney.api.selector import matches
from spinney.embedded.controllers.pods.replicas import SetPlan, from_template, least_wanted_first
from spinney.embedded.controllers.writes import (
    BURST,
    BY_CONTROLLER,
    PodWriter,
    after,
    changed_fields,
    condition,
    controller_uid,
    index_key,
    patch_status,
    slow_start,
)
from spinney.kube.caches.cache import Change
from spinney.kube.client.client import Patch
from spinney.kube.controllers.controller import After, Controller, owner_key
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import ApiError, NotFound
from spinney.kube.runtime import Runtime

FAILURE = "ReplicaFailure"


@dataclass
class ReplicaSetPlan(SetPlan):
    """The plan of a ReplicaSet, with pods to adopt and to release."""

    adopt: list[Pod] = field(default_factory=list)
    # Pods that it no longer selects.
    release: list[Pod] = field(default_factory=list)


def plan_replicaset(owner: ReplicaSet, pods: list[Pod], orphans: list[Pod], now: datetime) -> ReplicaSetPlan:
    """What a ReplicaSet needs, given its pods and the orphans that it selects."""
    plan = ReplicaSetPlan()
    deleting = owner.metadata.deletion_timestamp is not None
    if owner.spec.selector is not None and not deleting:
        plan.release = [pod for pod in pods if not _selects(owner, pod)]
    strangers = {pod.uid for pod in plan.release}
    pods = [pod for pod in pods if pod.uid not in strangers]
    plan.adopt = [] if deleting else [pod for pod in orphans if is_active(pod)]
    active = [pod for pod in pods if is_active(pod)] + plan.adopt
    if not deleting:
        missing = owner.spec.replicas - len(active)
        plan.create = [_pod(owner) for _ in range(min(missing, BURST))]
        plan.delete = least_wanted_first(active)[: max(0, -missing)]
    terminating = sum(1 for pod in pods if pod.metadata.deletion_timestamp is not None and not is_finished(pod))
    labels = (owner.spec.template.get("metadata") or {}).get("labels") or {}
    plan.status = changed_fields(
        owner.status,
        replicas=len(active),
        fully_labeled_replicas=sum(1 for pod in active if labels.items() <= pod.metadata.labels.items()),
        ready_replicas=sum(1 for pod in active if is_ready(pod)),
        available_replicas=plan.count_available(owner.spec, active, now),
        terminating_replicas=terminating,
        observed_generation=owner.metadata.generation,
    )
    return plan


def _pod(owner: ReplicaSet) -> Json:
    pod = from_template(owner, owner.spec.template)
    pod["metadata"]["generateName"] = f"{owner.name}-"
    return pod


def _failure(owner: ReplicaSet, failed: ApiError | None, plan: ReplicaSetPlan, now: datetime) -> Json:
    """The condition that says why pods could not be created; removed once none is missing."""
    old = find(owner.status.conditions, FAILURE)
    if failed is None:
        return {"conditions": None} if old is not None and not plan.create else {}
    if old is not None:
        return {}
    return {"conditions": [condition(FAILURE, "True", "FailedCreate", str(failed), now)]}


class ReplicaSets:
    """The ReplicaSet controller."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._sets = runtime.caches.of(ReplicaSet)
        self._pods = runtime.caches.of(Pod)
        self._pods.index(BY_CONTROLLER, controller_uid)
        self._pods.index("orphans", lambda pod: () if controller_of(pod.metadata) else (pod.namespace,))
        self._writer = PodWriter(runtime.client, Recorder(runtime.client, runtime.clock, "replicaset-controller"))
        self.controller = Controller("replicaset", runtime, self._reconcile)
        self.controller.watch(self._sets).watch(self._pods, owner_key("ReplicaSet"))
        self.controller.watch(self._pods, self._adopters)

    def _adopters(self, change: Change[Pod]) -> list[Key]:
        pod = change.new
        if pod is None or controller_of(pod.metadata) or pod.metadata.deletion_timestamp is not None:
            return []
        return [owner.key for owner in self._sets if _selects(owner, pod)]

    async def _reconcile(self, key: Key) -> After | None:
        owner = self._sets.get(key)
        if owner is None:
            return None
        orphans = [pod for pod in self._pods.by("orphans", owner.namespace) if _selects(owner, pod)]
        plan = plan_replicaset(owner, self._pods.by(BY_CONTROLLER, index_key(owner)), orphans, self._clock.now())
        await asyncio.gather(
            *(self._adopt(owner, pod) for pod in plan.adopt),
            *(self._release(owner, pod) for pod in plan.release),
            *(self._writer.delete(owner, pod) for pod in plan.delete),
        )
        failed = await self._fill(owner, plan.create)
        await patch_status(self._client, owner, plan.status | _failure(owner, failed, plan, self._clock.now()))
        if failed is not None:
            raise failed
        return after(plan.wake)

    async def _adopt(self, owner: ReplicaSet, pod: Pod) -> None:
        references = [controller_reference(owner)]
        metadata = {"uid": pod.uid, "resourceVersion": pod.metadata.resource_version, "ownerReferences": references}
        await self._client.patch(Pod, pod.key, {"metadata": metadata})

    async def _release(self, owner: ReplicaSet, pod: Pod) -> None:
        references = [{"$patch": "delete", "uid": owner.uid}]
        patch = {"metadata": {"uid": pod.uid, "ownerReferences": references}}
        with suppress(NotFound):
            await self._client.patch(Pod, pod.key, patch, kind=Patch.STRATEGIC)

    async def _fill(self, owner: ReplicaSet, pods: list[Json]) -> ApiError | None:
        """Create pods; returns the error where one of them is refused."""
        try:
            await slow_start(partial(self._writer.create, owner), pods)
        except ApiError as error:
            return error
        return None


def _selects(owner: ReplicaSet, pod: Pod) -> bool:
    selector = owner.spec.selector
    return selector is not None and owner.namespace == pod.namespace and matches(selector, pod.metadata.labels)
