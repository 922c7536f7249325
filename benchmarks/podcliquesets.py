"""How fast the operator makes, releases and removes 1,000 pods in 500 gangs, and how many writes that takes.

    python benchmarks/podcliquesets.py [--world embedded|real] [--replicas 500] [--out DIR]

Measured from the set's creation until all pods exist, until no gate is left, until all are ready (embedded only: the
real control plane has no nodes here), and from scaling to zero until no pod is left, and until nothing else is. Beside
it stands the creation of as many bare pods in the same run: compare with that, not with the clock. `cpu` is the time
that each process worked, whatever else the machine did; operator and backends run in this one (embedded: everything).
`needed` is what the writes that no gang can do without cost the real API server before anyone watches.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import uvloop
from _chart import Panel, bars
from _gangwrites import gang_costs
from _machine import children, cpu_seconds

from spinney.api.apiextensions import CustomResourceDefinition
from spinney.api.core import Node, Pod, Service
from spinney.api.crd import crds
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.kai import PodGroup
from spinney.api.podgang import PodGang
from spinney.backends.component import COMPONENT as BACKENDS
from spinney.embedded.cluster import Cluster
from spinney.embedded.nodes.profile import Profile
from spinney.grove.component import component
from spinney.kube.caches.cache import Cache, Caches, Change
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.https import connect
from spinney.kube.client.kubeconfig import find_server
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from spinney.kube.gc_tuning import collect_rarely
from spinney.kube.logs import configure
from spinney.testing.controlplane import ControlPlane

Json = dict[str, Any]
GROUPS = ("grove.io", "scheduler.grove.io", "scheduling.run.ai", "kai.scheduler")
POD = {"containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"memory": "10Mi"}}}]}
# What others measured, with their setting.
PEERS = {
    "grove-head-real-2-cores": {"created": 19.9, "ungated": 29.2, "zero": 8.0, "bare": 1.3},
    "grove-own-report": {"created": 22.0, "ready": 50.0, "zero": 56.0},
}


class Moment(NamedTuple):
    """A time by the clock, and by the work of each process: this one, and those of a real control plane."""

    wall: float
    cpu: dict[str, float]

    @staticmethod
    def now() -> Moment:
        """This moment."""
        servers = {name: cpu_seconds([pid]) for pid, name in children().items()}
        return Moment(time.perf_counter(), {"spinney": time.process_time(), **servers})

    def since(self, begin: Moment) -> Moment:
        """How long it has been."""
        worked = {name: round(seconds - begin.cpu.get(name, 0.0), 3) for name, seconds in self.cpu.items()}
        return Moment(round(self.wall - begin.wall, 3), worked)

    @property
    def work(self) -> float:
        """The work of all processes together."""
        return sum(self.cpu.values())


class Pods:
    """Counts pods by state from a watch, and tells when a count is reached."""

    def __init__(self, cache: Cache[Pod]) -> None:
        self.exist: set[str] = set()
        self.free: set[str] = set()
        self.ready: set[str] = set()
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[Moment]]] = []
        cache.on_change(self._changed)

    def _changed(self, change: Change[Pod]) -> None:
        name = change.object.name
        for kept, holds in (
            (self.exist, change.new is not None),
            (self.free, change.new is not None and not change.new.spec.scheduling_gates),
            (
                self.ready,
                change.new is not None
                and any(c.type == "Ready" and c.status == "True" for c in change.new.status.conditions),
            ),
        ):
            (kept.add if holds else kept.discard)(name)
        for condition, future in self._waiting:
            if not future.done() and condition():
                future.set_result(Moment.now())

    def when(self, condition: Callable[[], bool]) -> asyncio.Future[Moment]:
        """The moment at which something holds."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((condition, future))
        return future


class Binder:
    """Binds every pod without a gate, round about the nodes: the fastest scheduler there is."""

    def __init__(self, client: Client, pods: Cache[Pod], nodes: list[str]) -> None:
        self._client = client
        self._nodes = nodes
        self._count = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        pods.on_change(self._changed)

    def _changed(self, change: Change[Pod]) -> None:
        pod = change.new
        if pod is None or pod.spec.node_name or pod.spec.scheduling_gates or pod.metadata.deletion_timestamp:
            return
        if change.old is not None and not change.old.spec.scheduling_gates:
            return
        self._count += 1
        node = self._nodes[self._count % len(self._nodes)]
        body = {"metadata": {"name": pod.name}, "target": {"kind": "Node", "name": node}}
        task = asyncio.create_task(self._client.post(Pod, pod.key, "binding", body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def workload(replicas: int) -> Json:
    """Upstream's scale test: one clique of two pods."""
    spec = {
        "roleName": "expert-worker",
        "replicas": 2,
        "minAvailable": 2,
        "podSpec": {**POD, "schedulerName": "kai-scheduler"},
    }
    return {
        "metadata": {"name": "scale"},
        "spec": {"replicas": replicas, "template": {"cliques": [{"name": "worker", "spec": spec}]}},
    }


async def measure(
    client: Client, operator: Host, pods: Pods, replicas: int, runs: bool
) -> tuple[dict[str, Moment], float]:
    """One life of the set: zero to all, some less, some more, to zero; and the writes it takes until it is up."""
    count = 2 * replicas
    took: dict[str, Moment] = {}
    writes = [operator.runtimes[name].client.writes for name in ("grove", "backends")]
    for counted in writes:
        counted.clear()
    begin = Moment.now()
    created = pods.when(lambda: len(pods.exist) >= count)
    ungated = pods.when(lambda: len(pods.free) >= count)
    ready = pods.when(lambda: len(pods.ready) >= count)
    await client.create(PodCliqueSet, workload(replicas), "default")
    took["created"] = (await created).since(begin)
    took["ungated"] = (await ungated).since(begin)
    if runs:
        took["ready"] = (await ready).since(begin)
        await available(client, replicas)
        took["available"] = Moment.now().since(begin)
    await asyncio.sleep(2)
    per_replica = round(sum(counted.total() for counted in writes) / replicas, 2)
    for name, to in (("minus50", max(replicas - 25, 0)), ("plus50", replicas), ("zero", 0)):
        reached = pods.when(lambda to=to: len(pods.exist) == len(pods.free) == 2 * to)
        begin = Moment.now()
        await client.patch(PodCliqueSet, ("default", "scale"), {"spec": {"replicas": to}})
        took[name] = (await reached).since(begin)
        if to:
            await asyncio.sleep(1)
    await cleared(client)
    took["cleared"] = Moment.now().since(begin)
    await client.delete(PodCliqueSet, ("default", "scale"))
    return took, per_replica


async def cleared(client: Client) -> None:
    """Wait until nothing is left of the set's replicas: no gang, group, clique, or Service."""
    for kind in (PodGang, PodGroup, PodClique, Service):
        while True:
            listing = await client.list(kind, "default")
            if not [item for item in listing.items if item.name != "kubernetes"]:
                break
            await asyncio.sleep(0.1)


async def available(client: Client, replicas: int) -> None:
    """Wait until the set itself says that all replicas are available."""
    listing = await client.list(PodCliqueSet, "default")
    if any(pcs.status.available_replicas >= replicas for pcs in listing.items):
        return
    async for event in client.watch(PodCliqueSet, "default", resource_version=listing.resource_version):
        if event.object is not None and event.object.status.available_replicas >= replicas:
            return


async def bare(client: Client, pods: Pods, count: int) -> Moment:
    """As many pods without any operator."""
    begin = Moment.now()
    done = pods.when(lambda: len(pods.exist) >= count)
    slots = asyncio.Semaphore(64)

    async def one(index: int) -> None:
        async with slots:
            gated = {**POD, "schedulingGates": [{"name": "bench.io/hold"}]}
            await client.create(Pod, {"metadata": {"name": f"bare-{index}"}, "spec": gated}, "default")

    await asyncio.gather(*(one(index) for index in range(count)))
    took = (await done).since(begin)

    async def remove(index: int) -> None:
        async with slots:
            await client.delete(Pod, ("default", f"bare-{index}"), grace_seconds=0)

    gone = pods.when(lambda: not pods.exist)
    await asyncio.gather(*(remove(index) for index in range(count)))
    await gone
    return took


@dataclass
class World:
    """A cluster, who looks on, and what the operator sees it by; with nodes its pods run."""

    client: Client
    caches: Caches
    operator: Client
    operator_caches: Caches
    nodes: list[str]


async def bench(world: World, replicas: int) -> Json:
    """Everything on one cluster."""
    client, caches = world.client, world.caches
    for definition in crds(GROUPS):
        await client.create(CustomResourceDefinition.resource, definition)
    await asyncio.sleep(1)
    needed = await gang_costs(client, POD) if not world.nodes else None
    cache = caches.of(Pod, namespace="default")
    pods = Pods(cache)
    if world.nodes:
        Binder(client, cache, world.nodes)
    parts = [(component(), None), (BACKENDS, None)]
    host = Host(world.operator, SystemClock(), parts, caches=world.operator_caches)
    tasks = [asyncio.create_task(host.run())]
    if not caches.running:
        tasks.append(asyncio.create_task(caches.run()))
    try:
        await caches.synced()
        await host.ready.wait()
        alone = await bare(client, pods, 2 * replicas)
        took, writes = await measure(client, host, pods, replicas, bool(world.nodes))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    seconds = {name: each.wall for name, each in took.items()}
    compared = {name: took[name] for name in ("created", "ungated", "zero")}
    return {
        "bare": alone.wall,
        **seconds,
        "timesBare": {name: round(each.wall / alone.wall, 1) for name, each in compared.items()},
        "workTimesBare": {name: round(each.work / alone.work, 1) for name, each in compared.items()},
        "writesPerReplica": writes,
        **({"needed": needed} if needed else {}),
        "cpu": {name: each.cpu for name, each in {"bare": alone, **took}.items()},
    }


@asynccontextmanager
async def embedded() -> AsyncIterator[World]:
    """The cluster in this process, with simulated nodes; everyone reads from its caches, as with `spinney up`."""
    async with Cluster(nodes=Profile(count=100), chance=Chance(1)) as cluster:
        nodes = [node.name for node in (await cluster.client().list(Node)).items]
        yield World(cluster.client(), cluster.caches, cluster.client(), cluster.caches, nodes)


@asynccontextmanager
async def real() -> AsyncIterator[World]:
    """etcd, kube-apiserver and kube-controller-manager on this machine, without nodes."""
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder)) as plane:
        plane.start_controllers()
        server = find_server(str(plane.kubeconfig()))
        client, operator = (connect(server, per_second=5000, burst=5000) for _ in range(2))
        await asyncio.sleep(3)
        try:
            yield World(client, Caches(client), operator, Caches(operator), [])
        finally:
            await client.close()
            await operator.close()


async def main(worlds: list[str], replicas: int) -> Json:
    """The report."""
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]}
    report: Json = {"replicas": replicas, "machine": machine, "peers": PEERS}
    for name in worlds:
        async with {"embedded": embedded, "real": real}[name]() as world:
            report[name] = await bench(world, replicas)
    return report


# Seconds, and times the creation of bare pods in the same run.
AIMS = {"embedded": {"created": 1.0, "ready": 3.0, "zero": 2.0}, "real": {"created": 3.0, "ungated": 5.0, "zero": 3.0}}
STEPS = ("created", "ungated", "ready", "available", "minus50", "plus50", "zero", "cleared")


def chart(report: Json, file: Path) -> None:
    """By the clock and by work done; on the real API server in times of bare creation."""
    panels: list[Panel] = []
    if "embedded" in report:
        embedded = report["embedded"]
        shown = {step: embedded[step] for step in STEPS}
        panels.append(Panel(f"embedded: seconds for {report['replicas']} gangs", shown, AIMS["embedded"]))
        worked = {step: embedded["cpu"][step]["spinney"] for step in STEPS}
        panels.append(Panel("embedded: CPU seconds", worked, AIMS["embedded"]))
    if "real" in report:
        panels.append(Panel("real: times bare creation", report["real"]["timesBare"], AIMS["real"]))
    bars(file, panels)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", choices=["embedded", "real"], action="append")
    parser.add_argument("--replicas", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"))
    options = parser.parse_args()
    configure("text", "warning")
    collect_rarely()
    made = uvloop.run(main(options.world or ["embedded", "real"], options.replicas))
    print(json.dumps(made, indent=2))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "podcliquesets.json").write_text(json.dumps(made, indent=2))
    chart(made, options.out / "podcliquesets.png")
