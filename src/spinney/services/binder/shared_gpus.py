"""Shared GPUs: a reservation pod holds each from before its first user is bound until its last is gone."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress

from spinney.api import labels, reasons
from spinney.api.bindrequests import is_final, is_for
from spinney.api.core import Pod
from spinney.api.kai import BindRequest
from spinney.api.meta import Json, Key
from spinney.api.pod_state import is_active, is_finished
from spinney.kube.caches.cache import Change
from spinney.kube.caches.waiting import Waiting
from spinney.kube.controllers.controller import Controller
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import AlreadyExists, NotFound
from spinney.kube.runtime import Runtime
from spinney.services.binder.bind import Bind, BindError
from spinney.services.reservation.manifest import ReservationSettings, groups_of, reservation_name, reservation_pod

_BY_GPU_GROUP = "binder/gpu-group"


class SharedGpus:
    """Reserves devices for pods that share them, and releases unused ones."""

    def __init__(self, runtime: Runtime, settings: ReservationSettings) -> None:
        self._client = runtime.client
        self._settings = settings
        self._pods = runtime.caches.of(Pod)
        self._requests = runtime.caches.of(BindRequest)
        self._pods.index(_BY_GPU_GROUP, groups_of)
        self._requests.index(_BY_GPU_GROUP, lambda request: request.spec.selected_gpu_groups)
        self._waiting = Waiting(self._pods)
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._events = Recorder(runtime.client, runtime.clock, "binder")
        self.controller = Controller("gpu-reservations", runtime, self.reconcile, concurrency=32)
        self.controller.watch(self._pods, keys=_groups_changed, when=lambda change: bool(groups_of(change.object)))
        self.controller.watch(self._requests, keys=_groups_requested)

    def concerns(self, bind: Bind) -> bool:
        """Binds of pods that share a GPU."""
        return bind.request.spec.received_resource_type == reasons.FRACTION

    async def do(self, bind: Bind) -> None:
        """Reserve one device per group, and label the pod as their user."""
        groups = bind.request.spec.selected_gpu_groups
        if not groups:
            raise BindError("the decision names no GPU group for a pod that shares a GPU")
        for group in groups:
            # One reservation per group: pods of one group wait for each other.
            async with self._locks[group]:
                bind.devices.append(await self._reserve(bind, group))
        await self._label(bind.pod, {**_group_labels(bind.pod), **_labels_for(groups)})

    async def undo(self, bind: Bind) -> None:
        """Remove the pod's labels; unused reservations are deleted."""
        bind.devices.clear()
        with suppress(NotFound):
            stale = {**_group_labels(bind.pod), **dict.fromkeys(_labels_for(bind.request.spec.selected_gpu_groups))}
            await self._label(bind.pod, stale)
        for group in bind.request.spec.selected_gpu_groups:
            self.controller.enqueue("", group)

    async def reconcile(self, key: Key) -> None:
        """Delete reservations without users, and users without a reservation."""
        group = key[1]
        async with self._locks[group]:
            members = self._pods.by(_BY_GPU_GROUP, group)
            held = [pod for pod in members if pod.namespace == self._settings.namespace]
            # A pod without a node is no user: a label that a failed bind left must not hold a device.
            users = [
                pod
                for pod in members
                if pod.namespace != self._settings.namespace and pod.spec.node_name and is_active(pod)
            ]
            requested = [request for request in self._requests.by(_BY_GPU_GROUP, group) if self._holds(request)]
            if not users and not requested:
                for pod in held:
                    await self._delete(pod, grace_seconds=0)
            elif not any(is_active(pod) for pod in held) and not requested:
                for pod in users:
                    message = f"nothing holds shared GPU {group} any more"
                    self._events.event(pod, "Warning", "ReservationLost", message)
                    await self._delete(pod)
        if not members and not requested:
            self._locks.pop(group, None)

    def _holds(self, request: BindRequest) -> bool:
        """Whether a request keeps its devices: until it has failed, or its pod is seen to be bound.

        The watch on pods may be behind: a request that succeeded, of a pod without a node, has just succeeded.
        """
        if not is_final(request):
            return True
        pod = self._pods.get((request.namespace, request.spec.pod_name))
        if pod is None or request.status.phase != "Succeeded" or not is_for(request, pod):
            return False
        return not pod.spec.node_name and is_active(pod)

    async def _reserve(self, bind: Bind, group: str) -> str:
        name, namespace = reservation_name(bind.target, group), self._settings.namespace
        if self._pods.get((namespace, name)) is None:
            with suppress(AlreadyExists):
                body = reservation_pod(bind.node, group, bind.pod, self._settings)
                await self._client.create(Pod, body, namespace)
        most = self._settings.allocation_timeout_seconds
        try:
            pod = await self._waiting.until((namespace, name), _is_settled, most)
        except TimeoutError:
            await self._delete_named(name)
            raise BindError(f"reservation pod {namespace}/{name} told no GPU within {most:g} s") from None
        assert pod is not None
        if is_finished(pod):
            await self._delete(pod, grace_seconds=0)
            why = ": ".join(filter(None, (pod.status.reason, pod.status.message))) or pod.status.phase
            raise BindError(f"reservation pod {namespace}/{name} failed: {why}")
        return pod.metadata.annotations[labels.RESERVED_GPU]

    async def _label(self, pod: Pod, wanted: Mapping[str, str | None]) -> None:
        patch: Json = {"metadata": {"uid": pod.uid, "labels": wanted}}
        await self._client.patch(Pod, pod.key, patch)

    async def _delete(self, pod: Pod, grace_seconds: int | None = None) -> None:
        with suppress(NotFound):
            await self._client.delete(Pod, pod.key, uid=pod.uid, grace_seconds=grace_seconds)

    async def _delete_named(self, name: str) -> None:
        pod = self._pods.get((self._settings.namespace, name))
        if pod is not None:
            await self._delete(pod, grace_seconds=0)


def _group_labels(pod: Pod) -> dict[str, None]:
    """A patch that removes the labels of an earlier bind that could not be undone."""
    return {
        key: None for key in pod.metadata.labels if key == labels.GPU_GROUP or key.startswith(labels.GPU_GROUP_PREFIX)
    }


def _labels_for(groups: tuple[str, ...]) -> dict[str, str]:
    """The labels that name a pod's devices."""
    if len(groups) == 1:
        return {labels.GPU_GROUP: groups[0]}
    return {f"{labels.GPU_GROUP_PREFIX}{group}": group for group in groups}


def _is_settled(pod: Pod | None) -> bool:
    """Whether a reservation pod reports its GPU, or has ended."""
    return pod is not None and (bool(pod.metadata.annotations.get(labels.RESERVED_GPU)) or is_finished(pod))


def _groups_changed(change: Change[Pod]) -> Iterable[Key]:
    groups = {group for pod in (change.old, change.new) if pod is not None for group in groups_of(pod)}
    return [("", group) for group in groups]


def _groups_requested(change: Change[BindRequest]) -> Iterable[Key]:
    return [("", group) for group in change.object.spec.selected_gpu_groups]
