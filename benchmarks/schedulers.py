"""How long gangs take from applied to bound with each scheduler through our backend, side by side.

100 PodCliqueSets of one gang of 8 one-GPU pods each, on 200 simulated nodes of 8 GPUs, applied as fast as the API
server takes them. Every scheduler gets a fresh control plane on loopback, with the configuration that its project
ships. The operator, the backend and the nodes run in processes of their own, as `spinney run` and `spinney nodes` do.
YuniKorn talks to the API server through a relay: it can be kept to loopback only in a network of its own.
The numbers come out as JSON, and as a chart in benchmarks/out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from _chart import Panel, bars
from _machine import children, cpu_seconds

from spinney.api.core import Node
from spinney.api.crd import crds
from spinney.api.grove import PodCliqueSet
from spinney.api.kai import Queue
from spinney.api.meta import Json
from spinney.api.pod import Pod
from spinney.kube.caches.cache import Caches
from spinney.kube.client.client import Client
from spinney.kube.errors import ApiError
from spinney.testing.controlplane import ControlPlane
from spinney.testing.process import Program
from spinney.testing.schedulers.entries import ENTRIES, Entry
from spinney.testing.schedulers.running import Scheduler

OUT = Path(__file__).parent / "out"
_SECONDS = 600.0


def pcs(entry: Entry, index: int, pods: int) -> Json:
    """A set of one gang."""
    amount = {"nvidia.com/gpu": "1"}
    container = {"name": "main", "image": "busybox", "resources": {"requests": amount, "limits": amount}}
    spec = {"schedulerName": entry.scheduler_name, "containers": [container]}
    clique = {
        "name": "workers",
        "spec": {"roleName": "workers", "replicas": pods, "minAvailable": pods, "podSpec": spec},
    }
    return {"metadata": {"name": f"gang-{index}"}, "spec": {"replicas": 1, "template": {"cliques": [clique]}}}


@contextmanager
def programs(plane: ControlPlane, entry: Entry, nodes: int) -> Iterator[None]:
    """Nodes, the operator, the backend and, for ours, the scheduler, each as users run them."""
    kubeconfig = f"--kubeconfig={plane.kubeconfig()}"
    commands = {
        "nodes": ["nodes", f"--nodes={nodes}", "--gpus=8", kubeconfig],
        "operator": ["run", "grove", "backends", *entry.services, kubeconfig],
    }
    running = [
        Program([sys.executable, "-m", "spinney.cli", *command], plane.folder / f"{name}.log")
        for name, command in commands.items()
    ]
    try:
        yield
    finally:
        for program in running:
            program.stop()


async def install(client: Client, entry: Entry) -> None:
    """Create the kinds of Grove and of our scheduler, and its queue."""
    for definition in crds():
        await client.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body=definition)
    shares = {key: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for key in ("cpu", "memory", "gpu")}
    await _until_accepted(client, Queue, {"metadata": {"name": "default-queue"}, "spec": {"resources": shares}}, "")


async def _until_accepted(client: Client, kind: type[Any], body: Json, namespace: str) -> None:
    """Create an object of a kind that may not be served yet."""
    async with asyncio.timeout(_SECONDS):
        while True:
            try:
                await client.create(kind, body, namespace)
                return
            except ApiError:
                await asyncio.sleep(0.2)


async def measure(plane: ControlPlane, entry: Entry, nodes: int, gangs: int, pods: int) -> dict[str, Any]:
    """The times of one scheduler."""
    client = plane.client()
    await install(client, entry)
    other = Scheduler(entry.program, plane) if entry.program else None
    if other is not None:
        await other.install(client)
        other.start()
    elif not entry.services:
        plane.start_scheduler()
    with programs(plane, entry, nodes):
        caches = Caches(client)
        watching = asyncio.create_task(caches.run())
        try:
            await _ready_nodes(caches, nodes)
            # One gang ahead of the others: whoever has not started yet is not measured.
            await client.create(PodCliqueSet, pcs(entry, gangs, pods), "default")
            bound = _Bound(caches)
            await bound.reach(pods)
            cpu = {pid: cpu_seconds([pid]) for pid in children()}
            began = time.monotonic()
            waves = [client.create(PodCliqueSet, pcs(entry, index, pods), "default") for index in range(gangs)]
            await asyncio.gather(*waves)
            applied = time.monotonic() - began
            await bound.reach(pods * (gangs + 1))
            spent: Counter[str] = Counter()
            for pid, name in children().items():
                spent[name] += cpu_seconds([pid]) - cpu.get(pid, 0.0)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            if other is not None:
                other.stop()
            await client.close()
    times = sorted(when - began for name, when in bound.last.items() if name != f"gang-{gangs}-0")
    return {
        "scheduler": entry.title,
        "applied_seconds": round(applied, 2),
        "median_gang_seconds": round(statistics.median(times), 2),
        "all_bound_seconds": round(times[-1], 2),
        "cpu_seconds": {name: round(seconds, 1) for name, seconds in spent.items()},
    }


class _Bound:
    """When the last pod of each gang was bound."""

    def __init__(self, caches: Caches) -> None:
        self._pods = caches.of(Pod)
        self._changed = asyncio.Event()
        self._seen: set[str] = set()
        self.last: dict[str, float] = {}
        self._pods.on_change(lambda _: self._look())

    def _look(self) -> None:
        for pod in self._pods:
            gang = pod.metadata.labels.get("grove.io/podgang", "")
            if gang and pod.spec.node_name and pod.uid not in self._seen:
                self._seen.add(pod.uid)
                self.last[gang] = time.monotonic()
        self._changed.set()

    async def reach(self, count: int) -> None:
        async with asyncio.timeout(_SECONDS):
            while len(self._seen) < count:
                self._changed.clear()
                await self._changed.wait()


async def _ready_nodes(caches: Caches, count: int) -> None:
    nodes = caches.of(Node)
    changed = asyncio.Event()
    nodes.on_change(lambda _: changed.set())
    async with asyncio.timeout(_SECONDS):
        while sum(not node.spec.taints for node in nodes) < count:
            changed.clear()
            await changed.wait()


def main() -> None:
    """Measure every scheduler, or some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(ENTRIES))
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--gangs", type=int, default=100)
    parser.add_argument("--pods", type=int, default=8)
    options = parser.parse_args()
    results = []
    for name in options.only.split(","):
        entry = ENTRIES[name]
        with TemporaryDirectory() as folder, ControlPlane(Path(folder), entry.kubernetes) as plane:
            plane.start_controllers()
            results.append(asyncio.run(measure(plane, entry, options.nodes, options.gangs, options.pods)))
        print(json.dumps(results[-1]), file=sys.stderr)
    OUT.mkdir(exist_ok=True)
    values = {str(each["scheduler"]): float(each["all_bound_seconds"]) for each in results}
    bars(
        OUT / "schedulers.png", [Panel(f"{options.gangs} gangs of {options.pods}: seconds from apply to bound", values)]
    )
    print(json.dumps({"nodes": options.nodes, "gangs": options.gangs, "results": results}, indent=2))


if __name__ == "__main__":
    main()
