"""StatefulSets: pods and claims with stable names."""

from __future__ import annotations

from contextlib import suppress

from spinney.api.apps import StatefulSet
from spinney.api.core import PersistentVolumeClaim, Pod
from spinney.api.meta import Key
from spinney.embedded.controllers.sets.revisions import Revisions
from spinney.embedded.controllers.sets.statefulset_plan import StatefulSetPlan, plan_statefulset
from spinney.embedded.controllers.writes import (
    BY_CONTROLLER,
    after,
    controller_uid,
    create_once,
    delete_once,
    index_key,
    patch_status,
)
from spinney.kube.controllers.controller import After, Controller, owner_key
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Runtime


class StatefulSets:
    """The StatefulSet controller."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._sets = runtime.caches.of(StatefulSet)
        self._pods = runtime.caches.of(Pod)
        self._pods.index(BY_CONTROLLER, controller_uid)
        self._revisions = Revisions(runtime)
        self._recorder = Recorder(runtime.client, runtime.clock, "statefulset-controller")
        self.controller = Controller("statefulset", runtime, self._reconcile)
        self.controller.watch(self._sets).watch(self._pods, owner_key("StatefulSet"))

    async def _reconcile(self, key: Key) -> After | None:
        owner = self._sets.get(key)
        if owner is None:
            return None
        templates = await self._revisions.templates(owner)
        plan = plan_statefulset(owner, self._pods.by(BY_CONTROLLER, index_key(owner)), templates, self._clock.now())
        await self._apply(owner, plan)
        return after(plan.wake)

    async def _apply(self, owner: StatefulSet, plan: StatefulSetPlan) -> None:
        await self._revisions.create(owner, plan.revisions)
        for pod_name, body in plan.claims:
            if await create_once(self._client, PersistentVolumeClaim, body, owner.namespace):
                message = f"Create Claim {body['metadata']['name']} Pod {pod_name} in StatefulSet {owner.name} success"
                self._recorder.event(owner, "Normal", "SuccessfulCreate", message)
        for body in plan.create:
            await create_once(self._client, Pod, body, owner.namespace)
            message = f"Create Pod {body['metadata']['name']} in StatefulSet {owner.name} successful"
            self._recorder.event(owner, "Normal", "SuccessfulCreate", message)
        for pod in plan.delete:
            await delete_once(self._client, pod)
            message = f"Delete Pod {pod.name} in StatefulSet {owner.name} successful"
            self._recorder.event(owner, "Normal", "SuccessfulDelete", message)
        for name in plan.delete_claims:
            with suppress(NotFound):
                await self._client.delete(PersistentVolumeClaim, (owner.namespace, name))
        await patch_status(self._client, owner, plan.status)
