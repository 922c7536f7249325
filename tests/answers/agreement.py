"""A cluster in virtual time on which changes are asked about first and then made."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from spinney.answers.cluster import Cluster as Read
from spinney.answers.model import WhatIf
from spinney.answers.reading import read_cluster
from spinney.answers.whatif.applying import Created
from spinney.answers.whatif.changes import (
    AddNodes,
    Change,
    Create,
    DrainNode,
    RemoveNode,
    SetLimit,
    SetPriority,
    SetQuota,
)
from spinney.answers.whatif.difference import whatif
from spinney.api import labels
from spinney.api.batch import Job
from spinney.api.core import Namespace, Node, Pod
from spinney.api.kai import PodGroup, Queue
from spinney.api.meta import Json, convert
from spinney.api.schedulerfile import SchedulerFile
from spinney.api.scheduling import PriorityClass
from spinney.app.components import load
from spinney.app.installation import PRIORITIES, SYSTEM_NAMESPACE, install_crds
from spinney.embedded.cluster import Cluster
from spinney.embedded.nodes.profile import Profile
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.controllers.host import Host
from spinney.kube.errors import NotFound
from spinney.sim.loop import VirtualLoop, clock, virtual_loop
from tests import make
from tests.answers.scene import owner

T = TypeVar("T")
_COMPONENTS = ("scheduler", "binder", "podgrouper")
# Longer than grace periods; shorter than what a what-if looks ahead.
_SETTLED_SECONDS = 150.0


@dataclass(frozen=True)
class Work:
    """A Job: so many pods that are placed together, with GPUs each, in a queue, of a priority."""

    name: str
    pods: int
    gpus: int
    queue: str
    priority: str = "train"


@dataclass(frozen=True)
class Situation:
    """Nodes by GPUs, queues by quota and limit, Jobs in the order of their creation, and what changes then."""

    nodes: Sequence[int]
    queues: Sequence[tuple[str, float, float]]
    work: Sequence[Work]
    changes: Sequence[Change | Work]


@dataclass(frozen=True)
class Outcome:
    """What was placed afterwards: pods by Job and node; and the pods of before that are gone."""

    placed: dict[str, Counter[str]]
    gone: frozenset[str]


class Arena:
    """Runs situations one after the other on one cluster, which is emptied in between."""

    def __init__(self, loop: VirtualLoop, client: Client) -> None:
        self._loop = loop
        self.client = client

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end in virtual time."""
        return self._loop.run_until_complete(work)

    async def compare(self, situation: Situation) -> tuple[Outcome, Outcome, WhatIf]:
        """What was predicted, what happened, and the answer."""
        await self.empty()
        await self.set_up(situation)
        cluster = await read_cluster(self.client, clock())
        before = await self.pods()
        answer = whatif(cluster, [_as_change(each) for each in situation.changes], _expand)
        for change in situation.changes:
            await self._make(change)
        await asyncio.sleep(_SETTLED_SECONDS)
        after = await self.pods()
        alive = {pod.uid for pod in after}
        gone = frozenset(pod.name for pod in before if pod.spec.node_name and pod.uid not in alive)
        return predicted(before, answer), Outcome(_placed(after), gone), answer

    async def pods(self) -> list[Pod]:
        """The pods that are not being deleted."""
        return [pod for pod in (await self.client.list(Pod)).items if pod.metadata.deletion_timestamp is None]

    async def empty(self) -> None:
        """Delete everything, and wait until it is gone."""
        for job in (await self.client.list(Job)).items:
            await self.client.delete(Job, job.key, propagation="Foreground")
        await asyncio.sleep(60)
        for kind in (Queue, PodGroup, Node):
            for item in (await self.client.list(kind)).items:
                with suppress(NotFound):
                    await self.client.delete(kind, item.key)
        await asyncio.sleep(10)
        left = (await self.client.list(Pod)).items
        assert not left, [pod.name for pod in left]

    async def set_up(self, situation: Situation) -> None:
        """Create nodes, queues and Jobs, and let them settle."""
        for number, gpus in enumerate(situation.nodes):
            await self.client.create(Node, node(f"n{number}", gpus))
        for name, quota, limit in situation.queues:
            await self.client.create(Queue, make.queue(name).unlimited().gpu(quota=quota, limit=limit).build())
        for work in situation.work:
            await self.client.create(Job, job(work), "default")
            await asyncio.sleep(2)
        await asyncio.sleep(_SETTLED_SECONDS)

    async def _make(self, change: Change | Work) -> None:
        match change:
            case Work():
                await self.client.create(Job, job(change), "default")
            case AddNodes(count=count, gpus=gpus):
                for number in range(count):
                    await self.client.create(Node, node(f"new-{number}", gpus))
            case RemoveNode(node=name):
                await self.client.delete(Node, name)
            case DrainNode(node=name):
                await self.client.patch(Node, name, {"spec": {"unschedulable": True}})
                for pod in await self.pods():
                    if pod.spec.node_name == name:
                        await self.client.post(Pod, pod.key, "eviction", {"metadata": {"name": pod.name}})
            case SetQuota(queue=queue, gpus=gpus):
                await self.client.patch(Queue, queue, {"spec": {"resources": {"gpu": {"quota": gpus}}}})
            case SetLimit(queue=queue, gpus=gpus):
                await self.client.patch(Queue, queue, {"spec": {"resources": {"gpu": {"limit": gpus}}}})
            case SetPriority(workload=name, priority=priority):
                patch = {"metadata": {"labels": {labels.PRIORITY_CLASS: priority}}}
                await self.client.patch(Job, ("default", name), patch)


def predicted(before: Sequence[Pod], answer: WhatIf) -> Outcome:
    """The outcome that an answer tells, from the pods that were there."""
    placed = _placed(before)
    for each in (*answer.evicted, *answer.moved):
        assert each.workload is not None
        placed[each.workload.name][each.node or ""] -= 1
        if each.to is not None:
            placed[each.workload.name][each.to] += 1
    for start in answer.starts:
        placed.setdefault(start.workload.name, Counter()).update(start.pods_by_node)
    gone = frozenset(each.pod.partition("/")[2] for each in (*answer.evicted, *answer.moved))
    return Outcome({name: +nodes for name, nodes in placed.items() if +nodes}, gone)


def _placed(pods: Sequence[Pod]) -> dict[str, Counter[str]]:
    placed: dict[str, Counter[str]] = {}
    for pod in pods:
        if pod.spec.node_name:
            placed.setdefault(pod.metadata.labels["job"], Counter())[pod.spec.node_name] += 1
    return placed


def node(name: str, gpus: int) -> Json:
    """A simulated node."""
    capacity = {"cpu": "64", "memory": "1Ti", "pods": "110", labels.GPU_RESOURCE: str(gpus)}
    return {
        "metadata": {
            "name": name,
            "labels": {labels.HOSTNAME: name},
            "annotations": {labels.SIMULATED: "true"},
        },
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def job(work: Work) -> Json:
    """The Job of a piece of work; pods that are evicted do not count as failures."""
    marks = {labels.QUEUE: work.queue, labels.PRIORITY_CLASS: work.priority, "job": work.name}
    container = {"name": "main", "image": "x", "resources": {"limits": {labels.GPU_RESOURCE: str(work.gpus)}}}
    ignore = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {
        "metadata": {
            "name": work.name,
            "namespace": "default",
            "labels": marks,
            "annotations": {labels.BATCH_MIN_MEMBER: str(work.pods)},
        },
        "spec": {
            "parallelism": work.pods,
            "completions": work.pods,
            "backoffLimit": 100,
            "podFailurePolicy": {"rules": [ignore]},
            "template": {
                # As real pods do: one that ends at once is replaced before the scheduler has looked again.
                "metadata": {
                    "labels": {labels.QUEUE: work.queue, "job": work.name},
                    "annotations": {labels.STOP_AFTER: "5s"},
                },
                "spec": {"schedulerName": labels.KAI_SCHEDULER, "restartPolicy": "Never", "containers": [container]},
            },
        },
    }


def _as_change(change: Change | Work) -> Change:
    return Create(objects=[{"kind": "Job", "work": change}]) if isinstance(change, Work) else change


def _expand(cluster: Read, documents: Sequence[Json]) -> Created:
    """What the Job controller and the grouper make of a piece of work; the real ones are tested elsewhere."""
    created = Created()
    moment = cluster.now.isoformat()
    for document in documents:
        work: Work = document["work"]
        body = job(work)
        stamp = {"namespace": "default", "creationTimestamp": moment}
        spec = {"minMember": work.pods, "queue": work.queue, "priorityClassName": work.priority}
        group = f"pg-{work.name}-new"
        created.groups.append(
            convert(PodGroup, {"metadata": {**stamp, "name": group, "uid": f"uid-{group}"}, "spec": spec})
        )
        template = body["spec"]["template"]
        for number in range(work.pods):
            name = f"{work.name}-new-{number}"
            metadata = {
                **stamp,
                **template["metadata"],
                "name": name,
                "uid": f"uid-{name}",
                "annotations": {labels.POD_GROUP: group},
                "ownerReferences": [{**owner("batch/v1", "Job", work.name), "controller": True}],
            }
            created.pods.append(convert(Pod, {"metadata": metadata, "spec": template["spec"]}))
    return created


@contextmanager
def arena(scheduler: SchedulerFile | None = None) -> Iterator[Arena]:
    """A cluster with a scheduler, a binder and a grouper, to run situations on."""
    with virtual_loop() as loop:
        running = _running(scheduler)
        client = loop.run_until_complete(anext(running))
        try:
            yield Arena(loop, client)
        finally:
            loop.run_until_complete(running.aclose())


async def _running(scheduler: SchedulerFile | None) -> AsyncIterator[Client]:
    async with Cluster(nodes=Profile(count=0), clock=clock(), chance=Chance(3)) as cluster:
        client = cluster.client()
        await install_crds(client)
        await client.create(Namespace, {"metadata": {"name": SYSTEM_NAMESPACE}})
        for name, value in PRIORITIES.items():
            await client.create(PriorityClass, {"metadata": {"name": name}, "value": value})
        components = [(load(name), scheduler if name == "scheduler" else None) for name in _COMPONENTS]
        host = Host(client, cluster.clock, components, namespace=SYSTEM_NAMESPACE, caches=cluster.caches)
        life = asyncio.create_task(host.run(), name="components")
        try:
            await host.ready.wait()
            yield client
        finally:
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)
