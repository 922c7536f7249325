"""The node scale adjuster: creates whole-GPU pods, which autoscalers understand, for pods that share GPUs."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import datetime, timedelta
from fractions import Fraction

import msgspec

from spinney.api import labels, reasons
from spinney.api.conditions import find
from spinney.api.core import Pod
from spinney.api.image import default_image
from spinney.api.meta import Json, Key, Struct
from spinney.api.pod_state import is_finished
from spinney.api.quantity import QuantityError, exact, from_milli
from spinney.api.requests import pod_requests
from spinney.api.times import rfc3339
from spinney.kube.caches.cache import Change
from spinney.kube.client.client import Patch
from spinney.kube.controllers.controller import After, Controller, run_controllers
from spinney.kube.errors import AlreadyExists, Conflict, NotFound
from spinney.kube.runtime import Component, Rule, Runtime
from spinney.services.pods.usage import devices_of

_ALL: Key = ("", "all")
_LONGEST_LABEL = 63


class NodeScaleSettings(Struct, frozen=True):
    """Where stand-in pods are created and how they are sized."""

    scheduler_name: str = labels.KAI_SCHEDULER
    namespace: str = labels.SCALE_ADJUST_NAMESPACE
    service_account: str = labels.SCALE_ADJUST_NAMESPACE
    image: str = msgspec.field(default_factory=default_image)
    # The fraction of a GPU that a request by memory counts as: the memory of new GPUs is unknown.
    memory_as_fraction: str = "0.1"
    # No new stand-ins for so long after one was deleted: a new node takes a while to appear.
    cool_down_seconds: float = 60.0


def needed_gpus(pod: Pod, settings: NodeScaleSettings) -> Fraction:
    """The GPUs that a sharing pod needs on an empty node; 0 for any other pod."""
    annotations = pod.metadata.annotations
    if labels.GPU_MEMORY in annotations:
        return exact(settings.memory_as_fraction) * devices_of(pod)
    try:
        return exact(annotations.get(labels.GPU_FRACTION, "0")) * devices_of(pod)
    except QuantityError:
        return Fraction(0)


def waits_for_room(pod: Pod, settings: NodeScaleSettings) -> bool:
    """Whether a sharing pod is unschedulable."""
    if pod.spec.node_name or pod.spec.scheduler_name != settings.scheduler_name:
        return False
    if pod.metadata.deletion_timestamp is not None or pod.status.phase not in ("", "Pending"):
        return False
    scheduled = find(pod.status.conditions, reasons.POD_SCHEDULED)
    unschedulable = scheduled is not None and scheduled.status == "False" and scheduled.reason == reasons.UNSCHEDULABLE
    return unschedulable and needed_gpus(pod, settings) > 0


def plan(pods: list[Pod], settings: NodeScaleSettings) -> tuple[list[Pod], list[Pod]]:
    """The stand-ins to delete, and the waiting pods that need one."""
    waiting = [pod for pod in pods if waits_for_room(pod, settings)]
    sources = {pod.key for pod in waiting}
    stand_ins = [pod for pod in pods if is_stand_in(pod, settings)]
    unneeded = [pod for pod in stand_ins if _has_served(pod) or source_of(pod) not in sources]
    kept = [pod for pod in stand_ins if pod not in unneeded]
    return unneeded, plan_stand_ins(waiting, kept, settings)


def is_stand_in(pod: Pod, settings: NodeScaleSettings) -> bool:
    """Whether a pod is a stand-in that is not being deleted."""
    if pod.namespace != settings.namespace or pod.metadata.deletion_timestamp is not None:
        return False
    return bool(source_of(pod)[1])


def plan_stand_ins(waiting: list[Pod], present: list[Pod], settings: NodeScaleSettings) -> list[Pod]:
    """The waiting pods that need a scaling pod, so that all scaling pods together ask for the missing GPUs."""
    covered = sum(devices_of_stand_in(pod) for pod in present)
    largest = max((devices_of_stand_in(pod) for pod in present), default=0)
    named = {source_of(pod) for pod in present}
    missing = sum((needed_gpus(pod, settings) for pod in waiting), Fraction(0))
    chosen: list[Pod] = []
    # The widest first: it cannot be covered by any number of smaller ones.
    for pod in sorted(waiting, key=lambda pod: (-devices_of(pod), pod.namespace, pod.name)):
        if covered >= missing and devices_of(pod) <= largest:
            break
        if pod.key in named:
            continue
        chosen.append(pod)
        covered += devices_of(pod)
        largest = max(largest, devices_of(pod))
    return chosen


def source_of(stand_in: Pod) -> Key:
    """The pod that a stand-in represents."""
    # Labels are written only where they are short enough: annotations win.
    source = {**stand_in.metadata.labels, **stand_in.metadata.annotations}
    return source.get(labels.SCALING_POD_FOR_NAMESPACE, ""), source.get(labels.SCALING_POD_FOR, "")


def devices_of_stand_in(stand_in: Pod) -> int:
    """How many whole GPUs a stand-in requests."""
    return pod_requests(stand_in.spec).get(labels.GPU_RESOURCE, 0) // 1000


def _has_served(stand_in: Pod) -> bool:
    """Whether a stand-in has a node or has ended: its pod can use that node now."""
    return bool(stand_in.spec.node_name) or is_finished(stand_in)


def _is_unmarked(pod: Pod, settings: NodeScaleSettings) -> bool:
    """Whether a pod is a stand-in without a node that is not called unschedulable yet."""
    marked = find(pod.status.conditions, reasons.POD_SCHEDULED) is not None
    return is_stand_in(pod, settings) and not pod.spec.node_name and not marked


def stand_in_for(pod: Pod, settings: NodeScaleSettings) -> Json:
    """A pod that requests whole GPUs instead of fractions, and does nothing."""
    amounts = {name: from_milli(amount) for name, amount in pod_requests(pod.spec).items()}
    amounts[labels.GPU_RESOURCE] = str(devices_of(pod))
    plain = msgspec.to_builtins(pod.spec)
    placed = {key: plain[key] for key in ("affinity", "tolerations", "nodeSelector") if key in plain}
    source = {labels.SCALING_POD_FOR: pod.name, labels.SCALING_POD_FOR_NAMESPACE: pod.namespace}
    return {
        "metadata": {
            "name": _fitting(f"{pod.namespace}-{pod.name}"),
            "namespace": settings.namespace,
            # Labels are what upstream's tools look at; they end at 63 characters, annotations do not.
            "labels": {key: value for key, value in source.items() if len(value) <= _LONGEST_LABEL},
            "annotations": source,
        },
        "spec": {
            **placed,
            "restartPolicy": "OnFailure",
            "serviceAccountName": settings.service_account,
            "containers": [
                {
                    "name": "scaling-pod",
                    "image": settings.image,
                    "args": ["--version"],
                    "resources": {"requests": amounts, "limits": {labels.GPU_RESOURCE: amounts[labels.GPU_RESOURCE]}},
                }
            ],
        },
    }


def _fitting(name: str) -> str:
    if len(name) <= 253:
        return name
    return f"{name[:236]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


class NodeScaleAdjuster:
    """The controller; it looks at all waiting pods together, since the missing GPUs are a sum."""

    def __init__(self, runtime: Runtime, settings: NodeScaleSettings) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._settings = settings
        self._pods = runtime.caches.of(Pod)
        self._quiet_until: datetime | None = None
        self.controller = Controller("node-scale-adjuster", runtime, self.reconcile, concurrency=1)
        self.controller.watch(self._pods, keys=lambda change: (_ALL,), when=self._concerns_us)

    def _concerns_us(self, change: Change[Pod]) -> bool:
        pod = change.object
        if pod.namespace == self._settings.namespace:
            return True
        return pod.spec.scheduler_name == self._settings.scheduler_name and needed_gpus(pod, self._settings) > 0

    async def reconcile(self, key: Key) -> After | None:
        """Delete stand-ins that are no longer needed, mark those that no autoscaler sees, then create missing ones."""
        pods = list(self._pods)
        unneeded, missing = plan(pods, self._settings)
        now = self._clock.now()
        for pod in unneeded:
            await self._delete(pod)
            self._quiet_until = now + timedelta(seconds=self._settings.cool_down_seconds)
        for pod in pods:
            if pod not in unneeded and _is_unmarked(pod, self._settings):
                await self._mark(pod)
        if missing and self._quiet_until is not None and now < self._quiet_until:
            return After((self._quiet_until - now).total_seconds())
        for pod in missing:
            await self._create(pod)
        return None

    async def _create(self, pod: Pod) -> None:
        """Create a stand-in; once the watch shows it, it is marked."""
        with suppress(AlreadyExists):
            await self._client.create(Pod, stand_in_for(pod, self._settings), self._settings.namespace)

    async def _mark(self, stand_in: Pod) -> None:
        """Call a stand-in unschedulable: autoscalers act on such pods, and no scheduler looks at this one."""
        namespace, name = source_of(stand_in)
        condition = {
            "type": reasons.POD_SCHEDULED,
            "status": "False",
            "reason": reasons.UNSCHEDULABLE,
            "message": f"stands for pod {namespace}/{name}, which shares a GPU",
            "lastTransitionTime": rfc3339(self._clock.now()),
        }
        # The version is a precondition: what the watch has not shown yet may be the mark itself.
        version = {"resourceVersion": stand_in.metadata.resource_version}
        patch = {"metadata": version, "status": {"conditions": [condition]}}
        with suppress(Conflict, NotFound):
            await self._client.patch(Pod, stand_in.key, patch, subresource="status", kind=Patch.STRATEGIC)

    async def _delete(self, pod: Pod) -> None:
        with suppress(NotFound):
            await self._client.delete(Pod, pod.key, uid=pod.uid)


async def run(runtime: Runtime, settings: NodeScaleSettings | None = None) -> None:
    """Keep stand-ins as needed until cancelled."""
    await run_controllers(runtime, NodeScaleAdjuster(runtime, settings or NodeScaleSettings()).controller)


COMPONENT = Component(
    name="node-scale-adjuster",
    summary="Lets cluster autoscalers see what pods that share GPUs are missing.",
    run=run,
    settings=NodeScaleSettings,
    rules=(
        Rule(("",), ("pods",), ("get", "list", "watch", "create", "delete")),
        Rule(("",), ("pods/status",), ("patch",)),
    ),
)
