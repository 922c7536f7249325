"""A stand-in for another project's gang scheduler: the minimum of a gang at once or not at all, then the rest."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.podgang import PodGang
from spinney.api.quantity import milli
from spinney.api.requests import pod_requests
from spinney.kube.caches.cache import Caches
from spinney.kube.client.client import Client
from spinney.kube.errors import ApiError

# Backend → the name by which pods ask for its scheduler.
STAND_INS = {"koordinator": "koord-scheduler", "volcano": "volcano", "yunikorn": "yunikorn"}
_CYCLE_SECONDS = 0.1


class GangStandIn:
    """Binds pods of one scheduler that no gate holds; a node never gets more than it has."""

    def __init__(self, client: Client, scheduler: str) -> None:
        self._client = client
        self._scheduler = scheduler
        self._caches = Caches(client)
        self._pods = self._caches.of(Pod)
        self._nodes = self._caches.of(Node)
        self._gangs = self._caches.of(PodGang)
        # Where pods were bound, by UID, until the cache shows it.
        self._bound: dict[str, str] = {}
        self._wake = asyncio.Event()
        for cache in (self._pods, self._nodes, self._gangs):
            cache.on_change(lambda change: self._wake.set())

    async def run(self) -> None:
        """Place what can be placed, whenever something changed."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._caches.run())
            await self._caches.synced()
            while True:
                await self._wake.wait()
                await asyncio.sleep(_CYCLE_SECONDS)
                self._wake.clear()
                await self._place()

    async def _place(self) -> None:
        self._bound = {pod.uid: node for pod in self._pods if (node := self._node_of(pod))}
        idle = self._idle()
        waiting: dict[tuple[str, str], list[Pod]] = defaultdict(list)
        for pod in sorted(self._pods, key=lambda pod: pod.name):
            if self._waits(pod):
                waiting[pod.namespace, pod.metadata.labels.get(labels.PODGANG, "")].append(pod)
        for key, pods in sorted(waiting.items()):
            gang = self._gangs.get(key)
            if gang is None or not self._enough(gang, pods):
                continue
            for pod in pods:
                await self._bind(pod, idle)

    def _waits(self, pod: Pod) -> bool:
        free = not pod.spec.scheduling_gates and not self._node_of(pod) and pod.metadata.deletion_timestamp is None
        return free and pod.spec.scheduler_name == self._scheduler

    def _enough(self, gang: PodGang, pods: list[Pod]) -> bool:
        """Whether every group of the gang has its minimum, of pods that are placed or wait."""
        waiting = {pod.name for pod in pods}
        for group in gang.spec.podgroups:
            names = {reference.name for reference in group.pod_references}
            placed = sum(pod.name in names and bool(self._node_of(pod)) and _stays(pod) for pod in self._pods)
            if placed + len(names & waiting) < group.min_replicas:
                return False
        return True

    def _idle(self) -> dict[str, dict[str, int]]:
        idle = {
            node.name: {name: milli(amount) for name, amount in node.status.allocatable.items()}
            for node in sorted(self._nodes, key=lambda node: node.name)
            if not node.spec.unschedulable
        }
        for pod in self._pods:
            if (node := self._node_of(pod)) in idle and pod.status.phase not in ("Succeeded", "Failed"):
                _take(idle[node], pod)
        return idle

    def _node_of(self, pod: Pod) -> str:
        return pod.spec.node_name or self._bound.get(pod.uid, "")

    async def _bind(self, pod: Pod, idle: dict[str, dict[str, int]]) -> None:
        wanted = {**pod_requests(pod.spec), "pods": 1000}
        node = next((name for name, room in idle.items() if all(room.get(r, 0) >= a for r, a in wanted.items())), None)
        if node is None:
            return
        _take(idle[node], pod)
        self._bound[pod.uid] = node
        body = {"metadata": {"name": pod.name, "uid": pod.uid}, "target": {"kind": "Node", "name": node}}
        try:
            await self._client.post(Pod, pod.key, "binding", body)
        except ApiError:
            del self._bound[pod.uid]
            self._wake.set()


def _take(room: dict[str, int], pod: Pod) -> None:
    for name, amount in {**pod_requests(pod.spec), "pods": 1000}.items():
        room[name] = room.get(name, 0) - amount


def _stays(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None
