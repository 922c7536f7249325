"""A stand-in for a gang scheduler: minimums of base gangs, then those of scaled gangs, then the rest."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress

from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.pod_state import is_finished
from spinney.api.podgang import PodGang
from spinney.api.quantity import milli
from spinney.embedded.nodes.capacity import requests
from spinney.kube.caches.cache import Caches
from spinney.kube.client.client import Client, Patch
from spinney.kube.errors import ApiError

# Backend → the name by which pods ask for its scheduler.
STAND_INS = {"koordinator": "koord-scheduler", "volcano": "volcano", "yunikorn": "yunikorn"}
_CYCLE_SECONDS = 0.1
_UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}

# By node, how much of each resource is idle, in thousandths.
_IdleByNode = dict[str, dict[str, int]]


class GangStandIn:
    """Binds pods that no gate holds, gang by gang, all of a gang's minimum or nothing; no node is filled twice."""

    def __init__(self, client: Client, scheduler: str = "", pods_per_node: int | None = None, nodes: str = "") -> None:
        """It places the pods of one scheduler or all, on the nodes with a prefix, on each at most so many."""
        self._client = client
        self._scheduler = scheduler
        self._pods_per_node = pods_per_node
        self._prefix = nodes
        self._caches = Caches(client)
        self._pods = self._caches.of(Pod)
        self._nodes = self._caches.of(Node)
        self._gangs = self._caches.of(PodGang)
        # Where pods were bound, by UID, until the cache shows it: no node may be filled twice.
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
        idle_by_node = self._idle_by_node()
        minimums: list[tuple[bool, str, list[Pod]]] = []
        extras: list[Pod] = []
        for gang, pods in self._waiting():
            needed = self._needed(gang, pods)
            if needed is None:
                continue
            chosen = {pod.name for pod in needed}
            minimums.append((labels.BASE_PODGANG in gang.metadata.labels, gang.name, needed))
            extras += [pod for pod in pods if pod.name not in chosen]
        refused: list[Pod] = []
        for _, _, needed in sorted(minimums, key=lambda entry: entry[:2]):
            if not await self._bind_all(needed, idle_by_node):
                refused += needed
        for pod in [] if refused else extras:
            await self._bind_all([pod], idle_by_node)
        await self._refuse(refused)

    def _waiting(self) -> Iterable[tuple[PodGang, list[Pod]]]:
        """The gangs with pods to place."""
        waiting: dict[tuple[str, str], list[Pod]] = defaultdict(list)
        for pod in sorted(self._pods, key=lambda pod: pod.name):
            if self._waits(pod):
                waiting[pod.namespace, pod.metadata.labels.get(labels.PODGANG, "")].append(pod)
        return [(gang, pods) for key, pods in waiting.items() if (gang := self._gangs.get(key)) is not None]

    def _waits(self, pod: Pod) -> bool:
        free = not pod.spec.scheduling_gates and not self._node_of(pod) and _is_live(pod)
        return free and self._scheduler in ("", pod.spec.scheduler_name)

    def _needed(self, gang: PodGang, pods: list[Pod]) -> list[Pod] | None:
        """What the gang's minimum still lacks; None while not enough pods are free of gates."""
        needed: list[Pod] = []
        for group in gang.spec.podgroups:
            names = {reference.name for reference in group.pod_references}
            placed = sum(pod.name in names and bool(self._node_of(pod)) and _is_live(pod) for pod in self._pods)
            lacking = max(0, group.min_replicas - placed)
            own = [pod for pod in pods if pod.name in names]
            if len(own) < lacking:
                return None
            needed += own[:lacking]
        return needed

    def _idle_by_node(self) -> _IdleByNode:
        idle_by_node: _IdleByNode = {}
        for node in sorted(self._nodes, key=lambda node: node.name):
            if node.spec.unschedulable or not node.name.startswith(self._prefix):
                continue
            idle_by_node[node.name] = {name: milli(amount) for name, amount in node.status.allocatable.items()}
            if self._pods_per_node is not None:
                idle_by_node[node.name]["pods"] = 1000 * self._pods_per_node
        for pod in self._pods:
            if (node_name := self._node_of(pod)) in idle_by_node and not is_finished(pod):
                _take(idle_by_node[node_name], pod)
        return idle_by_node

    def _node_of(self, pod: Pod) -> str:
        return pod.spec.node_name or self._bound.get(pod.uid, "")

    async def _bind_all(self, pods: list[Pod], idle_by_node: _IdleByNode) -> bool:
        """Bind pods together where there is room for all of them; returns whether there is."""
        tried = {name: dict(room) for name, room in idle_by_node.items()}
        placement: list[tuple[Pod, str]] = []
        for pod in pods:
            node = next((name for name, room in tried.items() if _fits(pod, name, room)), None)
            if node is None:
                return False
            _take(tried[node], pod)
            placement.append((pod, node))
        idle_by_node.update(tried)
        await asyncio.gather(*(self._bind(pod, node) for pod, node in placement))
        return True

    async def _bind(self, pod: Pod, node: str) -> None:
        self._bound[pod.uid] = node
        body = {"metadata": {"name": pod.name, "uid": pod.uid}, "target": {"kind": "Node", "name": node}}
        try:
            await self._client.post(Pod, pod.key, "binding", body)
        except ApiError:
            del self._bound[pod.uid]
            self._wake.set()

    async def _refuse(self, pods: list[Pod]) -> None:
        """Say once on each pod that it found no room, as schedulers do."""
        for pod in pods:
            if not any(condition.reason == "Unschedulable" for condition in pod.status.conditions):
                with suppress(ApiError):
                    patch = {"status": {"conditions": [_UNSCHEDULABLE]}}
                    await self._client.patch(Pod, pod.key, patch, kind=Patch.STRATEGIC, subresource="status")


def _fits(pod: Pod, node: str, room: dict[str, int]) -> bool:
    return node not in _excluded_nodes(pod) and all(
        room.get(name, 0) >= amount for name, amount in requests(pod).items()
    )


def _take(room: dict[str, int], pod: Pod) -> None:
    for name, amount in requests(pod).items():
        room[name] = room.get(name, 0) - amount


def _excluded_nodes(pod: Pod) -> set[str]:
    """The nodes that a pod excludes by host name; the stand-in ignores all other affinity rules."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    terms = required.node_selector_terms if required is not None else ()
    expressions = [expression for term in terms for expression in term.match_expressions]
    return {name for expression in expressions if expression.operator == "NotIn" for name in expression.values}


def _is_live(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None
