"""A stand-in for the cluster autoscaler: adds simulated nodes for unschedulable pods and removes idle ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from spinney.api.core import Node, Pod
from spinney.api.labels import NODE_GROUP
from spinney.api.meta import Json, Key
from spinney.embedded.controllers.autoscaling.node_groups import NodeGroup, ScalingPlan, plan_scaling
from spinney.embedded.controllers.writes import after, delete_once
from spinney.kube.controllers.controller import After, Controller
from spinney.kube.controllers.events import Recorder
from spinney.kube.runtime import Runtime

_ALL: Key = ("", "all")
# Pods of a gang become unschedulable together: they are looked at together.
_GATHER_SECONDS = 1.0


class ClusterAutoscaler:
    """The controller; it looks at all pods and nodes together, since pods share the nodes that are added."""

    def __init__(
        self, runtime: Runtime, groups: Sequence[NodeGroup], register: Callable[[Json], Awaitable[bool]]
    ) -> None:
        self._client = runtime.client
        self._clock = runtime.clock
        self._groups = groups
        self._register = register
        self._pods = runtime.caches.of(Pod)
        self._nodes = runtime.caches.of(Node)
        self._idle_since: dict[str, datetime] = {}
        self._recorder = Recorder(runtime.client, runtime.clock, "cluster-autoscaler")
        self.controller = Controller(
            "cluster-autoscaler", runtime, self._reconcile, concurrency=1, gather=_GATHER_SECONDS
        )
        self.controller.watch(self._pods, keys=lambda _: (_ALL,)).watch(self._nodes, keys=lambda _: (_ALL,))
        self.controller.enqueue(*_ALL)

    async def _reconcile(self, key: Key) -> After | None:
        plan = plan_scaling(self._groups, self._nodes, self._pods)
        self._record_events(plan)
        for _, manifest in plan.add:
            await self._register(manifest)
        return await self._remove(plan.idle)

    def _record_events(self, plan: ScalingPlan) -> None:
        sizes = Counter(node.metadata.labels.get(NODE_GROUP, "") for node in self._nodes)
        added = Counter(group.name for group, _ in plan.add)
        for pod, group in plan.triggered:
            before = sizes[group.name]
            change = f"[{{{group.name} {before}->{before + added[group.name]} (max: {group.most})}}]"
            self._recorder.event(pod, "Normal", "TriggeredScaleUp", f"pod triggered scale-up: {change}")
        for pod, why in plan.refused:
            self._recorder.event(pod, "Normal", "NotTriggerScaleUp", f"pod didn't trigger scale-up: {why}")

    async def _remove(self, idle: Sequence[Node]) -> After | None:
        """Delete nodes that have been idle for long enough; returns when the next one will be."""
        now = self._clock.now()
        self._idle_since = {node.name: self._idle_since.get(node.name, now) for node in idle}
        sizes = Counter(node.metadata.labels.get(NODE_GROUP, "") for node in self._nodes)
        groups = {group.name: group for group in self._groups}
        waits = []
        # Those added last go first.
        for node in sorted(idle, key=lambda node: node.name, reverse=True):
            group = groups[node.metadata.labels[NODE_GROUP]]
            if sizes[group.name] <= group.least:
                continue
            left = group.idle_seconds - (now - self._idle_since[node.name]).total_seconds()
            if left > 0:
                waits.append(left)
                continue
            if await delete_once(self._client, node):
                self._recorder.event(node, "Normal", "ScaleDown", "node removed by cluster autoscaler: it was idle")
                sizes[group.name] -= 1
        return after(min(waits, default=None))
