"""StatefulSets: pods and claims with names that stay."""

from __future__ import annotations

from spinney.api.apps import ControllerRevision, StatefulSet
from spinney.api.core import PersistentVolumeClaim, Pod
from spinney.api.meta import Key
from spinney.embedded.controllers.sets.set_plan import BY_CONTROLLER, controller_uid, create_once, delete_once, report
from spinney.embedded.controllers.sets.statefulset_plan import StatefulPlan, plan_statefulset
from spinney.kube.controllers.controller import After, Controller, owner_key
from spinney.kube.controllers.events import Recorder
from spinney.kube.runtime import Runtime


class StatefulSets:
    """Keeps every StatefulSet at its size and revision."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._sets = runtime.caches.of(StatefulSet)
        self._pods = runtime.caches.of(Pod)
        self._revisions = runtime.caches.of(ControllerRevision)
        self._pods.index(BY_CONTROLLER, controller_uid)
        self._revisions.index(BY_CONTROLLER, controller_uid)
        self._recorder = Recorder(runtime.client, runtime.clock, "statefulset-controller")
        self.controller = Controller("statefulset", runtime, self._reconcile)
        self.controller.watch(self._sets).watch(self._pods, owner_key("StatefulSet"))

    async def _reconcile(self, key: Key) -> After | None:
        owner = self._sets.get(key)
        if owner is None:
            return None
        await self._revisions.synced()
        templates = {
            each.name: {k: v for k, v in each.data["spec"]["template"].items() if k != "$patch"}
            for each in self._revisions.by(BY_CONTROLLER, owner.uid)
        }
        plan = plan_statefulset(owner, self._pods.by(BY_CONTROLLER, owner.uid), templates, self._clock.now())
        await self._apply(owner, plan)
        return After(plan.wake) if plan.wake is not None else None

    async def _apply(self, owner: StatefulSet, plan: StatefulPlan) -> None:
        for body in plan.revisions:
            await create_once(self._client, ControllerRevision, body, owner.namespace)
        for user, body in plan.claims:
            if await create_once(self._client, PersistentVolumeClaim, body, owner.namespace):
                message = f"Create Claim {body['metadata']['name']} Pod {user} in StatefulSet {owner.name} success"
                self._recorder.event(owner, "Normal", "SuccessfulCreate", message)
        for body in plan.create:
            await create_once(self._client, Pod, body, owner.namespace)
            name = body["metadata"]["name"]
            message = f"Create Pod {name} in StatefulSet {owner.name} successful"
            self._recorder.event(owner, "Normal", "SuccessfulCreate", message)
        for pod in plan.delete:
            await delete_once(self._client, Pod, owner.namespace, pod.name, pod.uid)
            message = f"Delete Pod {pod.name} in StatefulSet {owner.name} successful"
            self._recorder.event(owner, "Normal", "SuccessfulDelete", message)
        for name in plan.drop_claims:
            await delete_once(self._client, PersistentVolumeClaim, owner.namespace, name)
        await report(self._client, owner, plan.status)


def controller(runtime: Runtime) -> Controller:
    """The StatefulSet controller."""
    return StatefulSets(runtime).controller
