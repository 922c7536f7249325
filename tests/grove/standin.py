"""A stand-in for a gang scheduler: base gangs' minimums, then scaled gangs', then the rest; a node holds one pod."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress

from spinney import initc
from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.podgang import PodGang
from spinney.kube.caches.cache import Caches, Change
from spinney.kube.client.client import Client, Patch
from spinney.kube.errors import ApiError


class StandIn:
    """Binds pods that no gate holds, gang by gang, all of a gang's minimum or nothing."""

    def __init__(self, client: Client, pods_per_node: int = 1, nodes: str = "") -> None:
        self._client = client
        self._prefix = nodes
        self._caches = Caches(client)
        self._pods = self._caches.of(Pod)
        self._nodes = self._caches.of(Node)
        self._gangs = self._caches.of(PodGang)
        self._room = pods_per_node
        # Where it has bound pods, by UID: a slow server shows a bind late, and no node is to be filled twice.
        self._bound: dict[str, str] = {}
        self._wake = asyncio.Event()
        for cache in (self._pods, self._nodes, self._gangs):
            cache.on_change(lambda change: self._wake.set())

    async def run(self) -> None:
        """Place what can be placed, whenever anything changed."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._caches.run())
            await self._caches.synced()
            while True:
                await self._wake.wait()
                # A scheduler has a cycle.
                await asyncio.sleep(0.1)
                self._wake.clear()
                await self._place()

    async def _place(self) -> None:
        self._bound = {pod.uid: self._node_of(pod) for pod in self._pods if self._node_of(pod)}
        free = self._free_nodes()
        waiting: dict[tuple[str, str], list[Pod]] = defaultdict(list)
        for pod in sorted(self._pods, key=lambda pod: pod.name):
            if not self._node_of(pod) and not pod.spec.scheduling_gates and _stays(pod):
                waiting[pod.namespace, pod.metadata.labels.get(labels.PODGANG, "")].append(pod)
        minimums: list[tuple[bool, str, list[Pod]]] = []
        extras: list[Pod] = []
        for (namespace, name), pods in waiting.items():
            gang = self._gangs.get((namespace, name))
            needed = self._needed(gang, pods) if gang is not None else None
            if gang is None or needed is None:
                continue
            chosen = {pod.name for pod in needed}
            minimums.append((labels.BASE_PODGANG in gang.metadata.labels, name, needed))
            extras += [pod for pod in pods if pod.name not in chosen]
        short = False
        for _, _, needed in sorted(minimums, key=lambda entry: entry[:2]):
            if len(needed) > len(free):
                short = True
                continue
            await asyncio.gather(*(self._bind(pod, free) for pod in needed))
        for pod in [] if short else extras:
            await self._bind(pod, free)
        if short:
            await self._refuse([pod for _, _, needed in minimums for pod in needed])

    async def _refuse(self, pods: list[Pod]) -> None:
        """Say once on each pod that it found no room, as schedulers do."""
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
        for pod in pods:
            if not any(found.reason == "Unschedulable" for found in pod.status.conditions):
                with suppress(ApiError):
                    patch = {"status": {"conditions": [said]}}
                    await self._client.patch(Pod, pod.key, patch, kind=Patch.STRATEGIC, subresource="status")

    def _needed(self, gang: PodGang, pods: list[Pod]) -> list[Pod] | None:
        """What the gang's minimum still lacks; None while not enough pods are free of gates."""
        needed: list[Pod] = []
        for group in gang.spec.podgroups:
            names = {reference.name for reference in group.pod_references}
            placed = sum(pod.name in names and bool(self._node_of(pod)) and _stays(pod) for pod in self._pods)
            lacking = max(0, group.min_replicas - placed)
            own = [pod for pod in pods if pod.name in names]
            if len(own) < lacking:
                return None
            needed += own[:lacking]
        return needed

    def _free_nodes(self) -> list[str]:
        used: dict[str, int] = defaultdict(int)
        for pod in self._pods:
            if self._node_of(pod) and pod.status.phase not in ("Succeeded", "Failed"):
                used[self._node_of(pod)] += 1
        open_nodes = [
            node.name for node in self._nodes if not node.spec.unschedulable and node.name.startswith(self._prefix)
        ]
        return [name for name in sorted(open_nodes) for _ in range(self._room - used[name])]

    def _node_of(self, pod: Pod) -> str:
        return pod.spec.node_name or self._bound.get(pod.uid, "")

    async def _bind(self, pod: Pod, free: list[str]) -> None:
        node = next((name for name in free if name not in _shunned(pod)), None)
        if node is None:
            return
        free.remove(node)
        self._bound[pod.uid] = node
        body = {"metadata": {"name": pod.name}, "target": {"kind": "Node", "name": node}}
        try:
            await self._client.post(Pod, pod.key, "binding", body)
        except ApiError:
            del self._bound[pod.uid]
            self._wake.set()


def _shunned(pod: Pod) -> set[str]:
    """The nodes that a pod does not want, by host name; of affinities the stand-in knows no more."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    expressions = (
        [expression for term in required.node_selector_terms for expression in term.match_expressions]
        if required
        else []
    )
    return {name for found in expressions if found.operator == "NotIn" for name in found.values}


def _stays(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None


class KubeletStandIn:
    """Runs what is bound: pods become ready once the cliques before them are, and those told to go are gone."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._caches = Caches(client)
        self._work: asyncio.Queue[Pod] = asyncio.Queue()
        self._started: set[str] = set()
        self._caches.of(Pod).on_change(self._changed)

    def _changed(self, change: Change[Pod]) -> None:
        if change.new is not None and change.new.spec.node_name:
            self._work.put_nowait(change.new)

    async def run(self) -> None:
        """Act on every change of a bound pod."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._caches.run())
            while True:
                tasks.create_task(self._act(await self._work.get()))

    async def _act(self, pod: Pod) -> None:
        with suppress(ApiError):
            if pod.metadata.deletion_timestamp is not None:
                await self._client.delete(Pod, pod.key, uid=pod.uid, grace_seconds=0)
            elif pod.uid not in self._started:
                self._started.add(pod.uid)
                await self._start(pod)

    async def _start(self, pod: Pod) -> None:
        for container in pod.spec.init_containers:
            if container.name == "grove-initc":
                await initc.program(self._client, pod, container)
        conditions = [{"type": kind, "status": "True"} for kind in ("Initialized", "ContainersReady", "Ready")]
        patch = {"metadata": {"uid": pod.uid}, "status": {"phase": "Running", "conditions": conditions}}
        await self._client.patch(Pod, pod.key, patch, kind=Patch.STRATEGIC, subresource="status")
