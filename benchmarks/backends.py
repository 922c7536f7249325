"""How fast backends turn PodGangs into their schedulers' objects, and how little they write.

PodGangs are put into an embedded API server first; then one backend at a time starts on it, as it would after a pause,
and is timed until every gang is told BackendReady. Started once more it must find nothing to do. Server and backend
share one process and one core, so the rate is a lower bound for a backend of its own. The numbers come out as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import platform
import resource
import sys
import time
from typing import Any

import structlog
import uvloop

from spinney.api.crd import crds
from spinney.api.meta import Json, convert
from spinney.api.podgang import PodGang
from spinney.backends.component import COMPONENT, BackendsConfig
from spinney.backends.interface import Cluster as View
from spinney.backends.kube_scheduler.releases import served_by
from spinney.backends.registry import Registry
from spinney.embedded.cluster import Cluster
from spinney.kube.client.client import Client
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host

GROUPS = (
    "scheduler.grove.io",
    "grove.io",
    "scheduling.run.ai",
    "kai.scheduler",
    "scheduling.volcano.sh",
    "topology.volcano.sh",
    "scheduling.sigs.k8s.io",
)
ROLES = {"router": (1, 1), "prefill": (2, 4), "decode": (4, 8)}


def gang(backend: str, index: int) -> Json:
    """A gang of three roles, as an inference service has them."""
    name = f"{backend}-{index}"
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"grove.io/scheduler-backend": backend}},
        "spec": {
            "podgroups": [
                {"name": f"{name}-{role}", "minReplicas": least, "podReferences": []}
                for role, (least, _) in ROLES.items()
            ]
        },
    }


async def create(client: Client, backend: str, count: int) -> None:
    """Put the gangs there."""
    for start in range(0, count, 200):
        indexes = range(start, min(start + 200, count))
        await asyncio.gather(*(client.create(PodGang, gang(backend, index), "default") for index in indexes))


async def converge(client: Client, backend: str, count: int) -> dict[str, Any]:
    """Run a backend until every gang is ready, and say how long it took and what it wrote."""
    host = Host(client, SystemClock(), [(COMPONENT, BackendsConfig(only=(backend,)))])
    gangs = host.caches.of(PodGang, labels=f"grove.io/scheduler-backend={backend}")
    ready: set[str] = set()
    done = asyncio.Event()

    def told(change: Any) -> None:
        current = change.object
        if any(c.type == "BackendReady" and c.status == "True" for c in current.status.conditions):
            ready.add(current.name)
        if len(ready) == count:
            done.set()

    gangs.on_change(told)
    started = time.perf_counter()
    cpu = time.process_time()
    task = asyncio.create_task(host.run())
    await done.wait()
    await host.ready.wait()
    took, used = time.perf_counter() - started, time.process_time() - cpu
    # What is still queued belongs to this run: a resync is over only when nothing is left to look at.
    await settle(host)
    writes = host.runtimes["backends"].client.writes
    total = writes.total(without=("Lease", "Event"))
    events = writes.of("Event")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return {"seconds": round(took, 2), "cpu_seconds": round(used, 2), "writes": total, "events": events}


async def settle(host: Host) -> None:
    """Wait until two looks apart find the same count of writes."""
    writes, before = host.runtimes["backends"].client.writes, -1
    while before != writes.total():
        before = writes.total()
        await asyncio.sleep(1.0)


def translated(backend: str, count: int) -> float:
    """Gangs per second through the pure half alone."""
    registry = Registry.load()
    plugin = registry.get(backend)
    assert plugin is not None
    served = View(served_by("1.35", registry))
    gangs = [
        convert(PodGang, {**gang(backend, i), "metadata": {"name": f"g-{i}", "uid": str(i)}}) for i in range(count)
    ]
    started = time.perf_counter()
    for each in gangs:
        plugin.translate(each, served)
    return round(count / (time.perf_counter() - started))


async def measure(backend: str, count: int) -> dict[str, Any]:
    """One backend, on a server of its own."""
    async with Cluster() as cluster:
        client = cluster.client()
        for definition in crds(GROUPS):
            await client.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body=definition)
        await create(client, backend, count)
        first = await converge(client, backend, count)
        again = await converge(client, backend, count)
    return {
        "backend": backend,
        "gangs": count,
        "translated_per_second": translated(backend, min(count, 2000)),
        "gangs_per_second": round(count / first["seconds"], 1),
        "writes_per_gang": round(first["writes"] / count, 3),
        "first": first,
        "resync": again,
    }


def main() -> None:
    """Measure every backend, or some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gangs", type=int, default=10_000)
    parser.add_argument("--only", default="default,kai,koordinator,volcano,yunikorn")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    results = []
    for backend in options.only.split(","):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            results.append(runner.run(measure(backend, options.gangs)))
        print(json.dumps(results[-1]), file=sys.stderr)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"python": platform.python_version(), "peak_mib": peak, "results": results}, indent=2))


if __name__ == "__main__":
    main()
