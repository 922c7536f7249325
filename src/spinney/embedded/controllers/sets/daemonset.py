"""DaemonSets: one pod on every node that they are for."""

from __future__ import annotations

from spinney.api.apps import ControllerRevision, DaemonSet
from spinney.api.core import Node, Pod
from spinney.api.meta import Key
from spinney.embedded.controllers.sets.daemonset_plan import plan_daemonset
from spinney.embedded.controllers.sets.set_plan import BY_CONTROLLER, controller_uid, create_once, delete_once, report
from spinney.kube.caches.cache import Change
from spinney.kube.controllers.controller import After, Controller, owner_key
from spinney.kube.controllers.events import Recorder
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
        self._revisions.index(BY_CONTROLLER, controller_uid)
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
        owner = self._sets.get(key)
        if owner is None:
            return None
        await self._revisions.synced()
        nodes = sorted(self._nodes, key=lambda node: node.name)
        known = {each.name for each in self._revisions.by(BY_CONTROLLER, owner.uid)}
        plan = plan_daemonset(owner, nodes, self._pods.by(BY_CONTROLLER, owner.uid), known, self._clock.now())
        for body in plan.revisions:
            await create_once(self._client, ControllerRevision, body, owner.namespace)
        for body in plan.create:
            made = await self._client.create(Pod, body, owner.namespace)
            self._recorder.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {made.name}")
        for pod in {each.uid: each for each in plan.delete}.values():
            if await delete_once(self._client, Pod, pod.namespace, pod.name, pod.uid):
                self._recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.name}")
        await report(self._client, owner, plan.status)
        return After(plan.wake) if plan.wake is not None else None


def controller(runtime: Runtime) -> Controller:
    """The DaemonSet controller."""
    return DaemonSets(runtime).controller
