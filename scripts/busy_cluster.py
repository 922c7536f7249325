"""A busy cluster for pictures of the dashboard: teams that share, borrow and wait, and gangs in every state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spinney.api import kai
from spinney.api.batch import Job
from spinney.api.core import Event, Namespace, Node, Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.labels import BATCH_MIN_MEMBER, GPU_FRACTION, GPU_RESOURCE, KAI_SCHEDULER, QUEUE
from spinney.api.meta import Json
from spinney.app.laptop import Laptop
from spinney.embedded.nodes.profile import Profile

NODES = Profile(count=64, racks=8, blocks=4, zones=2)
# Name, parent, quota of GPUs, weight, limit.
_QUEUES = (
    ("research", "", 256, 2, -1),
    ("vision", "research", 128, 2, -1),
    ("language", "research", 96, 2, -1),
    ("speech", "research", 32, 1, 48),
    ("product", "", 192, 1, -1),
    ("assistant", "product", 128, 1, -1),
    ("ranking", "product", 64, 1, -1),
    ("platform", "", 32, 1, 64),
    ("notebooks", "platform", 16, 1, 24),
    ("nightly", "platform", 16, 1, -1),
)
_TEAMS = ("vision", "language", "speech", "assistant", "ranking", "notebooks", "nightly")


@dataclass
class BusyCluster:
    """Fills a laptop cluster, step by step, each when the one before shows."""

    running: Laptop

    async def fill(self) -> None:
        """Queues and workloads; returns once what can run runs, and what borrowed has been reclaimed."""
        client = self.running.client
        for name, parent, quota, weight, limit in _QUEUES:
            await client.create(kai.Queue, _queue(name, parent, quota, weight, limit))
        for team in _TEAMS:
            await client.create(Namespace, {"metadata": {"name": team}})
        for node, change in (("node-41", {"spec": {"unschedulable": True}}), ("node-22", _NOT_READY)):
            await client.patch(Node, node, change)
        for kind, body in _first():
            await client.create(kind, body, body["metadata"]["namespace"])
        await self._until(lambda: self._gpus("language") >= 240)
        # Borrowed by one team while the others slept: they come back for their share.
        for kind, body in _later():
            await client.create(kind, body, body["metadata"]["namespace"])
        await self._until(lambda: self._gpus("vision") >= 128)
        for kind, body in _last():
            await client.create(kind, body, body["metadata"]["namespace"])
        events = self.running.cluster.caches.of(Event)
        await self._until(lambda: any(event.reason == "Unschedulable" for event in events))

    def _gpus(self, namespace: str) -> int:
        pods = self.running.cluster.caches.of(Pod)
        running = [pod for pod in pods if pod.namespace == namespace and pod.status.phase == "Running"]
        return sum(
            int(container.resources.requests.get(GPU_RESOURCE, "0"))
            for pod in running
            for container in pod.spec.containers
        )

    async def _until(self, holds: Callable[[], bool]) -> None:
        changed = asyncio.Event()
        for kind in (Pod, Event):
            self.running.cluster.caches.of(kind).on_change(lambda _: changed.set())
        async with asyncio.timeout(180):
            while not holds():
                changed.clear()
                await changed.wait()


_NOT_READY: Json = {"metadata": {"annotations": {"spinney.dev/state": "NotReady"}}}


def _first() -> Iterator[tuple[type, Json]]:
    for name, pods in (("bert-large", 8), ("llama-sft", 12), ("tokenizer-sweep", 4), ("long-context", 8)):
        yield Job, _job("language", name, pods, 8, "train")
    yield PodCliqueSet, _serving("assistant", "chat", 2, rack=True)
    yield PodCliqueSet, _serving("ranking", "recommend", 1, rack=False)
    for number, share in enumerate(("0.5", "0.25", "0.25", "0.5", "0.4", "0.6", "0.2", "0.3", "0.5", "0.75")):
        yield Job, _notebook(f"notebook-{number}", share)


def _later() -> Iterator[tuple[type, Json]]:
    yield Job, _job("vision", "diffusion-xl", 12, 8, "train")
    yield Job, _job("vision", "segment-video", 4, 8, "train")
    yield Job, _job("speech", "whisper-ft", 5, 8, "train")


def _last() -> Iterator[tuple[type, Json]]:
    yield Job, _job("speech", "voices", 4, 8, "train")
    yield Job, _job("language", "eval-suite", 6, 8, "inference")
    yield Job, _job("vision", "pretrain-base", 16, 8, "train")
    yield Job, _job("nightly", "regression", 2, 8, "build-preemptible")
    yield Job, _job("nightly", "fuzz", 16, 1, "build-preemptible")
    yield Job, _job("vision", "h200-only", 2, 8, "train", gpu="NVIDIA-H200")
    yield PodCliqueSet, _rack_of(12)


def _queue(name: str, parent: str, quota: int, weight: int, limit: int) -> Json:
    unlimited = {"quota": -1, "overQuotaWeight": 1, "limit": -1}
    gpu = {"quota": quota, "overQuotaWeight": weight, "limit": limit}
    spec: Json = {"resources": {"gpu": gpu, "cpu": unlimited, "memory": unlimited}}
    if parent:
        spec["parentQueue"] = parent
    return {"metadata": {"name": name}, "spec": spec}


def _container(name: str, gpus: int, cpu: str = "8") -> Json:
    amounts = {"cpu": cpu, "memory": "32Gi", **({GPU_RESOURCE: str(gpus)} if gpus else {})}
    limits = {GPU_RESOURCE: str(gpus)} if gpus else {}
    return {"name": name, "image": f"example.com/{name}", "resources": {"requests": amounts, "limits": limits}}


def _job(team: str, name: str, pods: int, gpus: int, priority: str, *, gpu: str = "") -> Json:
    labels = {QUEUE: team}
    pod: Json = {
        "schedulerName": KAI_SCHEDULER,
        "restartPolicy": "Never",
        "priorityClassName": priority,
        "nodeSelector": {"nvidia.com/gpu.product": gpu} if gpu else {},
        "containers": [_container("train", gpus)],
    }
    return {
        "metadata": {
            "name": name,
            "namespace": team,
            "labels": labels,
            "annotations": {BATCH_MIN_MEMBER: str(pods)},
        },
        "spec": {
            # Evicted pods are replaced for as long as it takes.
            "backoffLimit": 1000,
            "parallelism": pods,
            "completions": pods,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _clique(name: str, replicas: int, minimum: int, gpus: int, after: tuple[str, ...] = ()) -> Json:
    pod: Json = {"schedulerName": KAI_SCHEDULER, "containers": [_container(name, gpus)]}
    spec: Json = {"roleName": name, "replicas": replicas, "minAvailable": minimum, "podSpec": pod}
    if after:
        spec["startsAfter"] = list(after)
    return {"name": name, "spec": spec}


def _serving(team: str, name: str, replicas: int, *, rack: bool) -> Json:
    cliques = [
        _clique("leader", 1, 1, 0),
        _clique("prefill", 4, 2, 4, ("leader",)),
        _clique("decode", 8, 4, 4, ("leader",)),
        _clique("router", 1, 1, 0, ("prefill", "decode")),
    ]
    template: Json = {"cliqueStartupType": "CliqueStartupTypeExplicit", "cliques": cliques}
    if rack:
        template["topologyConstraint"] = {"topologyName": "grove-topology", "pack": {"required": "rack"}}
    metadata = {"name": name, "namespace": team, "labels": {QUEUE: team}}
    return {"metadata": metadata, "spec": {"replicas": replicas, "template": template}}


def _rack_of(pods: int) -> Json:
    template: Json = {
        "cliques": [_clique("worker", pods, pods, 8)],
        "topologyConstraint": {"topologyName": "grove-topology", "pack": {"required": "rack"}},
    }
    metadata = {"name": "mixture-of-experts", "namespace": "language", "labels": {QUEUE: "language"}}
    return {"metadata": metadata, "spec": {"replicas": 1, "template": template}}


def _notebook(name: str, share: str) -> Json:
    job = _job("notebooks", name, 1, 0, "build-preemptible")
    job["spec"]["template"]["metadata"]["annotations"] = {GPU_FRACTION: share}
    return job
