"""DaemonSets: one pod on every node that they are for."""

from __future__ import annotations

from spinney.api.core import Node, Pod
from spinney.api.meta import Json
from spinney.api.owners import controller_of
from spinney.embedded.controllers.daemonplan import plan_daemonset
from spinney.embedded.controllers.pods import BY_CONTROLLER, controller_uid
from spinney.embedded.controllers.views import ControllerRevision, DaemonSet
from spinney.kube.cache import Change, Key
from spinney.kube.controller import After, Controller, owner_key
from spinney.kube.errors import AlreadyExists, NotFound
from spinney.kube.events import Recorder
from spinney.kube.runtime import Runtime


class DaemonSets:
    """Keeps the pods of every DaemonSet on its nodes."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._sets = runtime.caches.of(DaemonSet)
        self._nodes = runtime.caches.of(Node)
        self._pods = runtime.caches.of(Pod)
        self._revisions = runtime.caches.of(ControllerRevision)
        self._pods.index(BY_CONTROLLER, controller_uid)
        self._revisions.index("owner", lambda each: (o.uid,) if (o := controller_of(each.metadata)) else ())
        self._recorder = Recorder(runtime.client, runtime.clock, "daemonset-controller")
        self.controller = Controller("daemonset", runtime, self._reconcile)
        self.controller.watch(self._sets).watch(self._pods, owner_key("DaemonSet")).watch(self._nodes, self._all)

    def _all(self, change: Change[Node]) -> list[Key]:
        """Every set, where a node came, went or looks different to daemons; a heartbeat is no reason."""
        old, new = change.old, change.new
        if old is not None and new is not None:
            same = old.metadata.labels == new.metadata.labels and old.spec.taints == new.spec.taints
            if same:
                return []
        return [(owner.namespace, owner.name) for owner in self._sets]

    async def _reconcile(self, key: Key) -> After | None:
        owner = self._sets.get(key[1], key[0])
        if owner is None:
            return None
        await self._revisions.synced()
        nodes = sorted(self._nodes, key=lambda node: node.name)
        known = {each.name for each in self._revisions.by("owner", owner.uid)}
        plan = plan_daemonset(owner, nodes, self._pods.by(BY_CONTROLLER, owner.uid), known, self._clock.now())
        for body in plan.revisions:
            await self._keep(owner, body)
        for body in plan.create:
            made = await self._client.create(Pod, body, owner.namespace)
            self._recorder.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {made.name}")
        for pod in {each.uid: each for each in plan.delete}.values():
            await self._delete(owner, pod)
        if plan.status:
            patch = {"metadata": {"uid": owner.uid}, "status": plan.status}
            await self._client.patch(DaemonSet, owner.name, owner.namespace, patch, subresource="status")
        return After(plan.wake) if plan.wake is not None else None

    async def _keep(self, owner: DaemonSet, body: Json) -> None:
        try:
            await self._client.create(ControllerRevision, body, owner.namespace)
        except AlreadyExists:
            return

    async def _delete(self, owner: DaemonSet, pod: Pod) -> None:
        try:
            await self._client.delete(Pod, pod.name, pod.namespace, uid=pod.uid)
        except NotFound:
            return
        self._recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.name}")


def controller(runtime: Runtime) -> Controller:
    """The DaemonSet controller."""
    return DaemonSets(runtime).controller
