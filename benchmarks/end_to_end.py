"""How long pods take from created to running, stage by stage, beside bare creation in the same run.

One-GPU pods for as many GPUs as there are: created → grouped (in a PodGroup) → decided (a BindRequest exists) → bound →
running. `embedded` has API server, simulated kubelets and services in one process; `real` is a real API server and etcd
with the services in a process of their own, as `spinney run` runs them in a cluster, by the token of a service account
that has just the rights of these services; nobody is behind the nodes, so it ends at bound.

Bare creation is the same pods for a scheduler that does not exist, by the same creator: a `burst` keeps many requests
in flight, `one at a time` waits for each answer, as a script does or a controller with one worker. Writes are those of
the services, by kind. CPU seconds are what each process worked from the first creation to the last stage, whatever else
the machine did. What each write costs the server alone is measured before the services start.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import re
import socket
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import structlog
import uvloop
import yaml
from _machine import children, cpu_seconds
from _writes import costs
from prometheus_client import generate_latest

from spinney.api.core import Node, Pod, ServiceAccount
from spinney.api.kai import BindRequest, PodGroup
from spinney.api.meta import Json, Object
from spinney.app.components import load
from spinney.app.installation import install, install_crds, platform_objects
from spinney.embedded.cluster import Cluster
from spinney.embedded.nodes.profile import Profile
from spinney.kube.caches.cache import Caches, Change
from spinney.kube.client.client import Client
from spinney.kube.client.discovery import Discovery
from spinney.kube.client.https import connect
from spinney.kube.client.kubeconfig import find_server
from spinney.kube.controllers.host import Host
from spinney.kube.gc_tuning import collect_rarely
from spinney.kube.manifests import EVENT_RULE, LEASE_RULE, rights
from spinney.testing.controlplane import ControlPlane

STAGES = ("created", "grouped", "decided", "bound", "running")
SERVICES = ("podgrouper", "podgroup-controller", "queue-controller", "scheduler", "binder")
# How many requests a creator keeps in flight.
CREATORS = {"burst": 32, "one at a time": 1}
# 4,000 pods on 500 nodes on two cores, others' programs on the same API server, measured by us.
PEERS = {
    "KAI (HEAD of 2026-08-07, 2,000 requests/s)": {"bound": 163.0, "times_bare_creation": 8.6},
    "kube-scheduler 1.35 (no queues, no groups)": {"bound": 15.0, "times_bare_creation": 1.1},
}
NAMESPACE = "spinney-system"
# Points of a curve that a chart shows.
_POINTS = 200
_WRITES = re.compile(r'^spinney_writes_total\{component="([^"]*)",kind="([^"]*)",verb="([^"]*)"\} (\S+)', re.M)


def pod(index: int, scheduler: str) -> Json:
    """A one-GPU pod."""
    amounts = {"nvidia.com/gpu": "1", "cpu": "1"}
    return {
        "metadata": {"name": f"{scheduler}-{index}", "labels": {"kai.scheduler/queue": "default-queue"}},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "image": "busybox", "resources": {"limits": amounts, "requests": amounts}}],
        },
    }


async def create(client: Client, count: int, scheduler: str, workers: int) -> float:
    """Create pods as fast as the server takes them; how long that took."""
    started = time.perf_counter()
    numbers = iter(range(count))

    async def worker() -> None:
        for index in numbers:
            await client.create(Pod, pod(index, scheduler), "default")

    await asyncio.gather(*(worker() for _ in range(workers)))
    return time.perf_counter() - started


class Stages:
    """When each pod reached each stage, by the watches of somebody who looks on."""

    def __init__(self, caches: Caches) -> None:
        self.times: dict[str, dict[str, float]] = {stage: {} for stage in STAGES}
        self.changed = asyncio.Event()
        caches.of(Pod).on_change(self._pod)
        caches.of(BindRequest).on_change(self._request)

    def _pod(self, change: Change[Pod]) -> None:
        pod = change.new
        if pod is None or pod.spec.scheduler_name != "kai-scheduler":
            return
        self._reach("created", pod.name)
        if "pod-group-name" in pod.metadata.annotations:
            self._reach("grouped", pod.name)
        if pod.spec.node_name:
            self._reach("bound", pod.name)
        if pod.status.phase == "Running":
            self._reach("running", pod.name)

    def _request(self, change: Change[BindRequest]) -> None:
        if change.new is not None:
            self._reach("decided", change.new.spec.pod_name)

    def _reach(self, stage: str, name: str) -> None:
        self.times[stage].setdefault(name, time.perf_counter())
        self.changed.set()

    async def until(self, stage: str, count: int, seconds: float) -> None:
        """Wait until so many pods reached a stage."""
        async with asyncio.timeout(seconds):
            while len(self.times[stage]) < count:
                self.changed.clear()
                await self.changed.wait()


def writes(metrics: str) -> dict[str, float]:
    """What components wrote, from their metrics."""
    return {f"{component} {verb} {kind}": float(value) for component, kind, verb, value in _WRITES.findall(metrics)}


async def measure(client: Client, caches: Caches, count: int, workers: int, last: str) -> Json:
    """Bare creation, then the same pods for our scheduler, until the last of them reached the last stage."""
    began = cpu()
    bare = await create(client, count, "nobody", workers)
    bare_cpu = since(began)
    await clear(client, Pod)
    stages = Stages(caches)
    started, began = time.perf_counter(), cpu()
    created = await create(client, count, "kai-scheduler", workers)
    await stages.until(last, count, 600)
    worked = since(began)
    ends = {stage: max(moments.values()) - started for stage, moments in stages.times.items() if moments}
    return {
        "pods": count,
        "bare_creation_seconds": round(bare, 2),
        "creation_seconds": round(created, 2),
        "last_seconds": {stage: round(at, 2) for stage, at in ends.items()},
        "times_bare_creation": round(ends["bound"] / bare, 2),
        "bare_cpu_seconds": bare_cpu,
        "cpu_seconds": worked,
        "load": round(os.getloadavg()[0], 1),
        "curves": {stage: _curve(moments.values(), started) for stage, moments in stages.times.items()},
    }


def _curve(times: Iterable[float], started: float) -> list[tuple[float, int]]:
    """Seconds and how many pods had come so far."""
    points = [(round(at - started, 2), number) for number, at in enumerate(sorted(times), 1)]
    return points[:: max(len(points) // _POINTS, 1)] + points[-1:]


async def clear(client: Client, *kinds: type[Object]) -> None:
    """Delete all objects of some kinds, at once."""
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    for kind in kinds:
        await client.call("DELETE", kind.resource.path("default"), body=options)


def cpu() -> dict[str, float]:
    """The time that this process and those it started have worked, by program; `python` are the services."""
    return {"benchmark": time.process_time()} | {name: cpu_seconds([pid]) for pid, name in children().items()}


def since(began: dict[str, float]) -> dict[str, float]:
    """How much longer each of them has worked."""
    return {name: round(seconds - began[name], 2) for name, seconds in cpu().items()}


async def at_rest(read: Callable[[], dict[str, float]]) -> dict[str, float]:
    """What was written when nothing more comes: statuses may be late, longer than the services gather them."""
    before, after = {}, read()
    while before != after:
        await asyncio.sleep(8)
        before, after = after, read()
    return after


def settled(before: dict[str, float], after: dict[str, float], count: int) -> Json:
    """Writes per pod of the services."""
    deltas = {key: round((value - before.get(key, 0)) / count, 3) for key, value in after.items()}
    ours = {key: value for key, value in sorted(deltas.items()) if key.partition(" ")[0] in SERVICES and value >= 0.001}
    return {"writes_per_pod": round(sum(ours.values()), 2), "writes": ours}


async def embedded(nodes: int, count: int) -> Json:
    """Everything in this process; it would not notice who creates."""
    async with Cluster(nodes=Profile(count=nodes)) as cluster:
        client = cluster.client()
        await install_crds(client)
        await install(client, platform_objects())
        caches = cluster.caches
        parts = [(component := load(name), component.settings() if component.settings else None) for name in SERVICES]
        host = Host(client, cluster.clock, parts, namespace=NAMESPACE, caches=caches)
        life = asyncio.create_task(host.run())
        await host.ready.wait()
        before = writes(generate_latest().decode())
        result = await measure(client, caches, count, CREATORS["burst"], "running")
        result |= settled(before, await at_rest(lambda: writes(generate_latest().decode())), count)
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        return {"burst": result}


async def real(nodes: int, count: int) -> Json:
    """A real API server, and the services in a process of their own; once for each creator."""
    with TemporaryDirectory() as folder, ControlPlane(Path(folder)) as plane:
        client = plane.client()
        await install_crds(client)
        await install(client, platform_objects())
        for body in Profile(count=nodes).nodes():
            body["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
            made = await client.create(Node, body)
            # Admission taints new nodes, and no controller runs here that would take that back.
            await client.patch(Node, made.name, {"spec": {"taints": None}})
        await client.create(ServiceAccount, {"metadata": {"name": "default"}}, "default")
        caches = Caches(client)
        life = asyncio.create_task(caches.run())
        caches.of(Pod)
        caches.of(BindRequest)
        results: Json = {}
        account = await _account(plane, client)
        alone = await _alone(client, account)
        async with _services(account) as metrics:
            for creator, workers in CREATORS.items():
                before = writes(metrics())
                results[creator] = await measure(client, caches, count, workers, "bound")
                results[creator] |= settled(before, await at_rest(lambda: writes(metrics())), count)
                results[creator]["server_ms_per_write"] = alone
                await clear(client, Pod, PodGroup, BindRequest)
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        await client.close()
        return results


async def _alone(client: Client, account: Path) -> dict[str, float]:
    """What the writes of this pipeline cost the server if there were no services at all."""
    services = connect(find_server(str(account)))
    node = (await client.list(Node)).items[0].name
    try:
        return await costs(client, services, lambda number: pod(number, "nobody"), node, 400)
    finally:
        await services.close()
        await clear(client, Pod, PodGroup, BindRequest)


async def _account(plane: ControlPlane, client: Client) -> Path:
    """The kubeconfig of an account with the rights of the services, and no more."""
    parts = [load(name) for name in SERVICES]
    everywhere = [*(rule for part in parts for rule in part.rules), EVENT_RULE]
    inside = [*(rule for part in parts for rule in part.namespace_rules), LEASE_RULE]
    for document in rights("spinney-services", NAMESPACE, everywhere, inside):
        resource = await Discovery(client).resource(document["apiVersion"], document["kind"])
        assert resource is not None
        await client.create(resource, document, document["metadata"].get("namespace", ""))
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 36000}}
    given = await client.post(ServiceAccount, (NAMESPACE, "spinney-services"), "token", asked)
    document = yaml.safe_load(plane.kubeconfig().read_text())
    document["users"][0]["user"] = {"token": given["status"]["token"]}
    file = plane.folder / "services.kubeconfig"
    file.write_text(yaml.safe_dump(document))
    return file


@asynccontextmanager
async def _services(kubeconfig: Path) -> AsyncIterator[Any]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "spinney.cli", "run", *SERVICES, "--kubeconfig", str(kubeconfig)]
    command += [
        "--namespace",
        NAMESPACE,
        "--health-listen",
        f"127.0.0.1:{port}",
        "--no-leader-election",
        "--log-level",
        "warning",
    ]
    process = await asyncio.create_subprocess_exec(*command)

    def read(path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())

    try:
        for _ in range(300):
            await asyncio.sleep(0.1)
            try:
                read("/readyz")
                break
            except OSError:
                continue
        yield lambda: read("/metrics")
    finally:
        process.terminate()
        await process.wait()


def chart(results: Json, file: Path) -> None:
    """How many pods reached each stage over time, a panel per world and creator."""
    import matplotlib as mpl  # noqa: PLC0415  # slow to load, and after the measurement is early enough

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415  # as above

    shown = [(f"{world}, {by}", result) for world, by_creator in results.items() for by, result in by_creator.items()]
    figure, panels = plt.subplots(1, len(shown), figsize=(5 * len(shown), 4), squeeze=False)
    for panel, (name, result) in zip(panels[0], shown, strict=True):
        for stage, curve in result["curves"].items():
            if curve:
                panel.plot(*zip(*curve, strict=True), label=stage)
        panel.axvline(result["bare_creation_seconds"], color="grey", linestyle=":", label="bare creation")
        panel.set(title=f"{name}: {result['pods']} pods", xlabel="seconds", ylabel="pods")
        panel.legend()
    if "real" in results:
        rivals = "; ".join(f"{name} {peer['bound']:g} s" for name, peer in PEERS.items())
        figure.supxlabel(f"4,000 pods bound on a real API server, two cores: {rivals}", fontsize=8)
    figure.tight_layout()
    figure.savefig(file, dpi=120)


def main() -> None:
    """Run the worlds and write end_to_end.json and end_to_end.png."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", default="embedded,real")
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=4000)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"))
    arguments = parser.parse_args()
    collect_rarely()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    results: Json = {}
    for world in arguments.worlds.split(","):
        run = {"embedded": embedded, "real": real}[world]
        results[world] = uvloop.run(run(arguments.nodes, arguments.pods))
        for creator, result in results[world].items():
            figures = {key: value for key, value in result.items() if key != "curves"}
            print(json.dumps({f"{world}, {creator}": figures}), flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    chart(results, arguments.out / "end_to_end.png")
    (arguments.out / "end_to_end.json").write_text(json.dumps({**results, "peers": PEERS}))


if __name__ == "__main__":
    main()
