"""StatefulSets: pods and claims with names that stay."""

from __future__ import annotations

from spinney.api.core import PersistentVolumeClaim, Pod
from spinney.api.meta import Json, Object
from spinney.api.owners import controller_of
from spinney.embedded.controllers.pods import BY_CONTROLLER, controller_uid
from spinney.embedded.controllers.statefulplan import StatefulPlan, plan_statefulset
from spinney.embedded.controllers.views import ControllerRevision, StatefulSet
from spinney.kube.cache import Key
from spinney.kube.controller import After, Controller, owner_key
from spinney.kube.errors import AlreadyExists, NotFound
from spinney.kube.events import Recorder
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
        self._revisions.index("owner", lambda each: (o.uid,) if (o := controller_of(each.metadata)) else ())
        self._recorder = Recorder(runtime.client, runtime.clock, "statefulset-controller")
        self.controller = Controller("statefulset", runtime, self._reconcile)
        self.controller.watch(self._sets).watch(self._pods, owner_key("StatefulSet"))

    async def _reconcile(self, key: Key) -> After | None:
        owner = self._sets.get(key[1], key[0])
        if owner is None:
            return None
        await self._revisions.synced()
        templates = {
            each.name: {k: v for k, v in each.data["spec"]["template"].items() if k != "$patch"}
            for each in self._revisions.by("owner", owner.uid)
        }
        plan = plan_statefulset(owner, self._pods.by(BY_CONTROLLER, owner.uid), templates, self._clock.now())
        await self._apply(owner, plan)
        return After(plan.wake) if plan.wake is not None else None

    async def _apply(self, owner: StatefulSet, plan: StatefulPlan) -> None:
        for body in plan.revisions:
            await self._make(ControllerRevision, owner, body)
        for body in plan.claims:
            await self._make(PersistentVolumeClaim, owner, body)
        for body in plan.create:
            await self._make(Pod, owner, body)
            name = body["metadata"]["name"]
            message = f"create Pod {name} in StatefulSet {owner.name} successful"
            self._recorder.event(owner, "Normal", "SuccessfulCreate", message)
        for pod in plan.delete:
            await self._remove(Pod, owner.namespace, pod.name, pod.uid)
            message = f"delete Pod {pod.name} in StatefulSet {owner.name} successful"
            self._recorder.event(owner, "Normal", "SuccessfulDelete", message)
        for name in plan.drop_claims:
            await self._remove(PersistentVolumeClaim, owner.namespace, name)
        if plan.status:
            patch = {"metadata": {"uid": owner.uid}, "status": plan.status}
            await self._client.patch(StatefulSet, owner.name, owner.namespace, patch, subresource="status")

    async def _make(self, kind: type[Object], owner: StatefulSet, body: Json) -> None:
        try:
            await self._client.create(kind, body, owner.namespace)
        except AlreadyExists:
            return

    async def _remove(self, kind: type[Object], namespace: str, name: str, uid: str = "") -> None:
        try:
            await self._client.delete(kind, name, namespace, uid=uid)
        except NotFound:
            return


def controller(runtime: Runtime) -> Controller:
    """The StatefulSet controller."""
    return StatefulSets(runtime).controller
