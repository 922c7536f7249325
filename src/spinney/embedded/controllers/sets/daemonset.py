"""DaemonSets: one pod on every eligible node."""

from __future__ import annotations

from spinney.api.apps import DaemonSet
from spinney.api.core import Node, Pod
from spinney.api.meta import Key
from spinney.embedded.controllers.sets.daemonset_plan import plan_daemonset
from spinney.embedded.controllers.sets.revisions import Revisions
from spinney.embedded.controllers.writes import BY_CONTROLLER, PodWriter, after, controller_uid, index_key, patch_status
from spinney.kube.caches.cache import Change
from spinney.kube.controllers.controller import After, Controller, owner_key
from spinney.kube.controllers.events import Recorder
from spinney.kube.runtime import Runtime


class DaemonSets:
    """The DaemonSet controller."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._sets = runtime.caches.of(DaemonSet)
        self._nodes = runtime.caches.of(Node)
        self._pods = runtime.caches.of(Pod)
        self._pods.index(BY_CONTROLLER, controller_uid)
        self._revisions = Revisions(runtime)
        self._writer = PodWriter(runtime.client, Recorder(runtime.client, runtime.clock, "daemonset-controller"))
        self.controller = Controller("daemonset", runtime, self._reconcile)
        self.controller.watch(self._sets).watch(self._pods, owner_key("DaemonSet"))
        self.controller.watch(self._nodes, lambda _: [owner.key for owner in self._sets], when=_may_move_pods)

    async def _reconcile(self, key: Key) -> After | None:
        owner = self._sets.get(key)
        if owner is None:
            return None
        revisions = await self._revisions.templates(owner)
        nodes = sorted(self._nodes, key=lambda node: node.name)
        pods = self._pods.by(BY_CONTROLLER, index_key(owner))
        plan = plan_daemonset(owner, nodes, pods, revisions.keys(), self._clock.now())
        await self._revisions.create(owner, plan.revisions)
        for body in plan.create:
            await self._writer.create(owner, body)
        for pod in {pod.uid: pod for pod in plan.delete}.values():
            await self._writer.delete(owner, pod)
        await patch_status(self._client, owner, plan.status)
        return after(plan.wake)


def _may_move_pods(change: Change[Node]) -> bool:
    """Whether a node is new, gone, or has other labels or taints; a heartbeat changes neither."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    return old.metadata.labels != new.metadata.labels or old.spec.taints != new.spec.taints
