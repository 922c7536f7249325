"""The embedded API server in this process, over HTTPS, and the real API server, side by side.

Every world gets the same requests: pods of one template are created with many in flight, listed whole, changed under
ten watchers, and some of them bound, given the status of a running pod, and deleted; then pods of which no two are
alike. The servers behind HTTPS are processes of their own, on the same machine as this client, and so share its cores.
Memory is what the server's process grew by (for the real one, etcd's is counted too). The numbers come out as JSON and
a chart.

Usage: python benchmarks/api.py [--pods 10000] [--worlds in-process,https,real] [--out DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from _chart import Panel, bars
from _machine import children, cpu_seconds, resident

from spinney.embedded.apiserver.access.credentials import ADMIN
from spinney.embedded.apiserver.server import ApiServer
from spinney.kube.chance import Chance
from spinney.kube.client.https import Https
from spinney.kube.client.kubeconfig import from_kubeconfig
from spinney.kube.client.transport import InProcess, Request, Transport
from spinney.kube.clock import SystemClock
from spinney.kube.gc_tuning import collect_rarely

PODS = "/api/v1/namespaces/default/pods"
JSON = {"content-type": "application/json", "accept": "application/json"}
MERGE = {"content-type": "application/merge-patch+json", "accept": "application/json"}
STRATEGIC = {"content-type": "application/strategic-merge-patch+json", "accept": "application/json"}
CHANGED = b'"type":"MODIFIED"'
IN_FLIGHT = 64
WATCHERS = 10


@dataclass
class World:
    """A server under test."""

    name: str
    transport: Transport
    start_seconds: float
    pids: list[int]


def pod(index: int, **more: Any) -> bytes:
    """A one-GPU pod; its container may say more."""
    container = {"name": "main", "image": "busybox", "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}}}
    metadata = {"name": f"pod-{index:06}", "labels": {"app": "bench", "index": str(index)}}
    return msgspec.json.encode({"metadata": metadata, "spec": {"containers": [{**container, **more}]}})


def own_spec(index: int) -> bytes:
    """A pod with a spec that no other has, as those that are told their rank."""
    return pod(2 * 10**6 + index, env=[{"name": "RANK", "value": str(index)}])


def status() -> bytes:
    """What a kubelet says of a pod that runs."""
    then = "2026-01-01T00:00:00Z"
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    conditions = [{"type": name, "status": "True", "lastTransitionTime": then} for name in types]
    container = {"name": "main", "image": "busybox", "imageID": "", "ready": True, "started": True, "restartCount": 0}
    status_body = {
        "phase": "Running",
        "podIP": "10.1.0.1",
        "startTime": then,
        "conditions": conditions,
        "containerStatuses": [{**container, "state": {"running": {"startedAt": then}}}],
    }
    return msgspec.json.encode({"status": status_body})


def bind(name: str) -> Request:
    """A scheduler's decision."""
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "node"}}
    return Request("POST", f"{PODS}/{name}/binding", (), JSON, msgspec.json.encode(body))


async def many(world: World, requests: list[Request]) -> float:
    """Send requests with many in flight; the rate per second."""
    queue = iter(requests)
    start = time.perf_counter()

    async def work() -> None:
        for request in queue:
            answer = await world.transport.send(request)
            assert answer.status < 300, answer.body

    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    return len(requests) / (time.perf_counter() - start)


async def fan_out(world: World, names: list[str]) -> float:
    """Change pods under ten watchers; events per second, until each watcher has seen every change."""
    listing = await world.transport.send(Request("GET", PODS, (("limit", "1"),), JSON))
    version = msgspec.json.decode(listing.body)["metadata"]["resourceVersion"]
    query = (("watch", "true"), ("resourceVersion", version))
    streams = [await world.transport.send(Request("GET", PODS, query, JSON)) for _ in range(WATCHERS)]

    async def follow(stream: Any) -> None:
        seen, rest = 0, b""
        async for chunk in stream:
            # A chunk may end within the word.
            seen += chunk.count(CHANGED) + (rest + chunk[: len(rest)]).count(CHANGED)
            rest = (rest + chunk[-len(CHANGED) :])[1 - len(CHANGED) :]
            if seen >= len(names):
                return

    start = time.perf_counter()
    followers = [asyncio.create_task(follow(answer.stream)) for answer in streams]
    body = b'{"metadata":{"labels":{"touched":"yes"}}}'
    await many(world, [Request("PATCH", f"{PODS}/{name}", (), MERGE, body) for name in names])
    await asyncio.gather(*followers)
    took = time.perf_counter() - start
    for answer in streams:
        await answer.stream.aclose()  # type: ignore[union-attr]  # a watch is answered with a stream
    return len(names) * WATCHERS / took


async def apart(phase: Awaitable[float]) -> float:
    """Measure a phase after what earlier ones left has been collected, so that it does not pay for them."""
    gc.collect()
    return await phase


async def measure(world: World, count: int) -> dict[str, Any]:
    """All rows for one world."""
    await many(world, [Request("POST", PODS, (), JSON, pod(10**6 + index)) for index in range(200)])
    before = resident(world.pids)
    requests = [Request("POST", PODS, (), JSON, pod(index)) for index in range(count)]
    gc.collect()
    busy = cpu_seconds(world.pids)
    writes = await many(world, requests)
    busy = cpu_seconds(world.pids) - busy
    grown = resident(world.pids) - before
    start = time.perf_counter()
    listing = await world.transport.send(Request("GET", PODS, (), JSON))
    listed = time.perf_counter() - start
    assert len(msgspec.json.decode(listing.body)["items"]) >= count
    names = [f"pod-{index:06}" for index in range(min(count, 2000))]
    events = await apart(fan_out(world, names))
    running, now = status(), b'{"gracePeriodSeconds":0}'
    binds = await apart(many(world, [bind(name) for name in names]))
    statuses = await apart(
        many(world, [Request("PATCH", f"{PODS}/{name}/status", (), STRATEGIC, running) for name in names])
    )
    deletes = await apart(many(world, [Request("DELETE", f"{PODS}/{name}", (), JSON, now) for name in names]))
    own = await apart(many(world, [Request("POST", PODS, (), JSON, own_spec(index)) for index in range(len(names))]))
    return {
        "world": world.name,
        "start_seconds": round(world.start_seconds, 2),
        "writes_per_second": round(writes),
        # What the server's processes worked for one write, in process with the client's share.
        "cpu_microseconds_per_write": round(busy / count * 1e6),
        "own_specs_per_second": round(own),
        "binds_per_second": round(binds),
        "statuses_per_second": round(statuses),
        "deletes_per_second": round(deletes),
        "list_seconds": round(listed, 3),
        "list_megabytes": round(len(listing.body) / 1e6, 1),
        "watch_events_per_second": round(events),
        "bytes_per_pod": round(grown / count),
    }


@asynccontextmanager
async def in_process() -> AsyncIterator[World]:
    """A direct call."""
    start = time.perf_counter()
    server = ApiServer(SystemClock(), Chance())
    await server.start()
    yield World("in-process", InProcess(server, ADMIN), time.perf_counter() - start, [os.getpid()])


@asynccontextmanager
async def over_https() -> AsyncIterator[World]:
    """`spinney up --bare` without nodes, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder, "kubeconfig")
        command = [str(Path(sys.executable).with_name("spinney")), "up", "--bare", "--nodes", "0", "--port", "0"]
        start = time.perf_counter()
        process = subprocess.Popen([*command, "--kubeconfig", str(kubeconfig)], stdout=subprocess.PIPE)  # noqa: ASYNC220  # nothing else runs yet
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(b"ready"), line
        took = time.perf_counter() - start
        transport = Https(from_kubeconfig([kubeconfig]), connections=IN_FLIGHT + WATCHERS)
        try:
            yield World("https", transport, took, [process.pid])
        finally:
            await transport.close()
            process.terminate()
            process.wait()


@asynccontextmanager
async def real() -> AsyncIterator[World]:
    """kube-apiserver and etcd, as the tests build and run them."""
    from spinney.testing.controlplane import ControlPlane  # noqa: PLC0415  # only where it is asked for

    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with ControlPlane(Path(folder)) as plane:
            took = time.perf_counter() - start
            kubeconfig = plane.kubeconfig()
            transport = Https(from_kubeconfig([kubeconfig]), connections=IN_FLIGHT + WATCHERS)
            account = b'{"metadata":{"name":"default"}}'
            await transport.send(Request("POST", "/api/v1/namespaces/default/serviceaccounts", (), JSON, account))
            try:
                yield World("real", transport, took, list(children()))
            finally:
                await transport.close()


# Row, what it is, and the aim by world.
ROWS = (
    ("writes_per_second", "pods created / s", {"in-process": 20_000, "https": 2_000}),
    ("cpu_microseconds_per_write", "server's CPU µs / write", {}),
    ("own_specs_per_second", "pods with own specs / s", {}),
    ("binds_per_second", "pods bound / s", {}),
    ("statuses_per_second", "statuses of pods / s", {}),
    ("deletes_per_second", "pods deleted / s", {}),
    ("watch_events_per_second", "events / s to 10 watchers", {}),
    ("list_seconds", "s to list all pods", {}),
    ("start_seconds", "s to start", {"https": 2.0}),
    ("bytes_per_pod", "bytes / pod", {}),
)


def chart(rows: list[dict[str, Any]], file: Path) -> None:
    """A panel per row of the table, a bar per world."""
    bars(file, [Panel(title, {row["world"]: row[key] for row in rows}, aims) for key, title, aims in ROWS])


WORLDS = {"in-process": in_process, "https": over_https, "real": real}


async def main() -> None:
    """Measure the worlds that are asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--worlds", default="in-process,https,real")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"))
    options = parser.parse_args()
    collect_rarely()
    rows = []
    for name in options.worlds.split(","):
        async with WORLDS[name]() as world:
            rows.append(await measure(world, options.pods))
            print(json.dumps(rows[-1]), file=sys.stderr)
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]}
    report = json.dumps({"pods": options.pods, "in_flight": IN_FLIGHT, "machine": machine, "rows": rows}, indent=2)
    print(report)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "api.json").write_text(report)
    chart(rows, options.out / "api.png")


if __name__ == "__main__":
    uvloop.run(main())
