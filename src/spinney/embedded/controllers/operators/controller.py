"""Runs one stand-in operator: compares an owner's children with those it should have."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, TypeVar

from spinney.api.apps import StatefulSet
from spinney.api.batch import Job
from spinney.api.core import Pod
from spinney.api.meta import Key, Object
from spinney.api.untyped import untyped
from spinney.embedded.controllers.operators.plan import Child, Children, OperatorPlan, RayCluster
from spinney.embedded.controllers.operators.registry import Operator
from spinney.embedded.controllers.writes import (
    BURST,
    BY_CONTROLLER,
    controller_uid,
    create_once,
    delete_once,
    index_key,
    patch_status,
    slow_start,
)
from spinney.kube.caches.cache import Cache
from spinney.kube.client.client import Client
from spinney.kube.controllers.controller import Controller, owner_key
from spinney.kube.controllers.events import Recorder
from spinney.kube.difference import merge_patch
from spinney.kube.errors import ApiError
from spinney.kube.runtime import Runtime

T = TypeVar("T", bound=Object)


class OperatorController:
    """The controller of one kind."""

    def __init__(self, operator: Operator, runtime: Runtime) -> None:
        self._plan = operator.plan
        self._client: Client = runtime.client
        self._clock = runtime.clock
        kind = operator.resource.kind
        self._owners = runtime.caches.of(untyped(operator.resource))
        self._caches = {made: runtime.caches.of(made) for made in operator.creates}
        self._recorder = Recorder(runtime.client, runtime.clock, f"{kind.lower()}-controller")
        self.controller = Controller(kind.lower(), runtime, self._reconcile)
        self.controller.watch(self._owners)
        for cache in self._caches.values():
            cache.index(BY_CONTROLLER, controller_uid)
            self.controller.watch(cache, owner_key(kind))

    async def _reconcile(self, key: Key) -> None:
        owner = self._owners.get(key)
        if owner is None or owner.metadata.deletion_timestamp is not None:
            return
        children = Children(
            pods=self._of(Pod, owner),
            jobs=self._of(Job, owner),
            sets=self._of(StatefulSet, owner),
            clusters=self._of(RayCluster, owner),
        )
        try:
            plan = self._plan(owner, children, self._clock.now())
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # The definition takes any spec: what cannot be read is told, and waits for the next change.
            self._recorder.event(owner, "Warning", "InvalidSpec", f"The spec cannot be read: {error!r}")
            return
        # The status first: the pod grouper reads the name of a RayJob's cluster from it.
        await patch_status(self._client, owner, merge_patch(owner.status, plan.status))
        await self._apply(owner, plan, children)

    async def _apply(self, owner: Object, plan: OperatorPlan, children: Children) -> None:
        present = {(type(child).resource.kind, child.name) for child in children.all()}
        missing = [child for child in plan.wanted if (child.kind.resource.kind, child.name) not in present]
        gone = {child.uid: child for child in plan.delete if child.metadata.deletion_timestamp is None}
        await asyncio.gather(
            *(self._client.patch(type(child), child.key, patch) for child, patch in plan.patch),
            *(self._delete(owner, child) for child in gone.values()),
        )
        await slow_start(partial(self._create, owner), missing[:BURST])

    async def _create(self, owner: Object, child: Child) -> None:
        kind = child.kind.resource.kind.lower()
        try:
            if await create_once(self._client, child.kind, child.body, owner.namespace):
                self._recorder.event(owner, "Normal", "SuccessfulCreate", f"Created {kind}: {child.name}")
        except ApiError as error:
            self._recorder.event(owner, "Warning", "FailedCreate", f"Error creating {kind} {child.name}: {error}")
            raise

    async def _delete(self, owner: Object, child: Object) -> None:
        if await delete_once(self._client, child, propagation="Background"):
            kind = type(child).resource.kind.lower()
            self._recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted {kind}: {child.name}")

    def _of(self, kind: type[T], owner: Object) -> list[T]:
        cache: Cache[Any] | None = self._caches.get(kind)
        return cache.by(BY_CONTROLLER, index_key(owner)) if cache is not None else []
