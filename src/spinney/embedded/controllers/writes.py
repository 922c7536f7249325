"""Writes that controllers share: each may be repeated, and an object that is gone is no error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal, TypeVar

import msgspec

from spinney.api.core import Pod
from spinney.api.meta import Json, Object, Struct
from spinney.api.owners import controller_of
from spinney.api.times import rfc3339
from spinney.kube.client.client import Client, Patch
from spinney.kube.controllers.controller import After
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import AlreadyExists, ApiError, NotFound

T = TypeVar("T")
# Type, status, reason and message.
ConditionRow = tuple[str, str, str, str]
# Type, reason and message.
Event = tuple[Literal["Normal", "Warning"], str, str]

# How many pods a controller creates in one reconcile, as in Kubernetes; its next one creates more.
BURST = 500
_LARGEST_BATCH = 32
# Names of indexes.
BY_CONTROLLER = "controller-uid"
BY_NODE = "node"


def controller_uid(child: Object) -> tuple[str, ...]:
    """The index key of an object: its controller's UID, in its own namespace, since anybody may name any UID."""
    owner = controller_of(child.metadata)
    return (f"{child.namespace}/{owner.uid}",) if owner else ()


def index_key(owner: Object) -> str:
    """The key that objects have whose controller is this one."""
    return f"{owner.namespace}/{owner.uid}"


def node_name(pod: Pod) -> tuple[str, ...]:
    """The index key of a pod: its node."""
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def after(seconds: float | None) -> After | None:
    """When to reconcile again; None waits for the next change."""
    return After(seconds) if seconds is not None else None


def changed_fields(status: Struct, **wanted: Any) -> Json:
    """The fields of a status that differ from the wanted ones, under their wire names."""
    names = {field.name: field.encode_name for field in msgspec.structs.fields(status)}
    return {names[name]: value for name, value in wanted.items() if getattr(status, name) != value}


def condition(type_: str, status: str, reason: str, message: str, now: datetime) -> Json:
    """A condition that changes now."""
    row = {"type": type_, "status": status, "reason": reason, "message": message}
    return {**row, "lastTransitionTime": rfc3339(now)}


async def patch_status(client: Client, target: Object, status: Json, kind: Patch = Patch.MERGE) -> None:
    """Patch the status of this very object, if there is anything to change."""
    if status:
        patch = {"metadata": {"uid": target.uid}, "status": status}
        with suppress(NotFound):
            await client.patch(type(target), target.key, patch, kind=kind, subresource="status")


async def create_once(client: Client, kind: type[Object], body: Json, namespace: str = "") -> bool:
    """Create an object unless one of that name exists; returns whether it was created."""
    try:
        await client.create(kind, body, namespace)
    except AlreadyExists:
        return False
    return True


async def delete_once(client: Client, target: Object, **options: Any) -> bool:
    """Delete this very object; returns whether it was there."""
    try:
        await client.delete(type(target), target.key, uid=target.uid, **options)
    except NotFound:
        return False
    return True


async def remove_finalizer(client: Client, target: Object, finalizer: str) -> None:
    """Remove a finalizer, if nobody has changed the object meanwhile."""
    kept = [name for name in target.metadata.finalizers if name != finalizer]
    version = {"uid": target.uid, "resourceVersion": target.metadata.resource_version}
    with suppress(NotFound):
        patch = {"metadata": {**version, "finalizers": kept}}
        await client.patch(type(target), target.key, patch)


def batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Slow start, as in Kubernetes: one, two, four … at a time: if all are refused, only one was tried.

    A batch is one turn of the loop, in which nobody else is answered: so its size is bounded.
    """
    start, size = 0, 1
    while start < len(items):
        yield items[start : start + size]
        start, size = start + size, min(size * 2, _LARGEST_BATCH)


async def slow_start(create: Callable[[T], Awaitable[None]], items: Sequence[T]) -> None:
    """Create in growing batches; the first batch with an error is the last, and raises it."""
    for batch in batches(items):
        results = await asyncio.gather(*map(create, batch), return_exceptions=True)
        failed = next((error for error in results if error is not None), None)
        if failed is not None:
            raise failed


class PodWriter:
    """Creates and deletes the pods of owners, and reports both as events of the owner."""

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder

    async def create(self, owner: Object, body: Json) -> None:
        """Create a pod; one that is refused is an event too, since its owner shows nothing else of it."""
        try:
            pod = await self._client.create(Pod, body, owner.namespace)
        except ApiError as error:
            self._recorder.event(owner, "Warning", "FailedCreate", f"Error creating: {error}")
            raise
        self._recorder.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {pod.name}")

    async def delete(self, owner: Object, pod: Pod) -> None:
        """Delete a pod."""
        if await delete_once(self._client, pod):
            self._recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.name}")
