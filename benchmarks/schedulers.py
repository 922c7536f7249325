"""How long gangs take from applied to bound with each scheduler through our backend, side by side.

100 PodCliqueSets of one gang of 8 one-GPU pods each, on 200 simulated nodes of 8 GPUs, applied as fast as the API
server takes them. Every scheduler gets a fresh control plane on loopback, with the configuration that its project
ships. The operator with the backend, our scheduler and the nodes run in processes of their own, as `spinney run` and
`spinney nodes` do. YuniKorn and KAI talk to the API server through a relay: they can be kept to loopback only in a
network of their own. The numbers are printed as JSON; `--write` puts them into docs/results/schedulers.md as well.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from _chart import Panel, rows
from _machine import cpu_seconds, descendants

from spinney.api.apiextensions import CustomResourceDefinition
from spinney.api.core import Node
from spinney.api.crd import crds
from spinney.api.grove import PodCliqueSet
from spinney.api.kai import Queue
from spinney.api.meta import Json
from spinney.api.pod import Pod
from spinney.kube.caches.cache import Caches
from spinney.kube.client.client import Client
from spinney.kube.errors import AlreadyExists, ApiError
from spinney.testing.controlplane import ControlPlane
from spinney.testing.process import Program
from spinney.testing.schedulers.entries import ENTRIES, Entry
from spinney.testing.schedulers.homes import lacking
from spinney.testing.schedulers.launches import Setup
from spinney.testing.schedulers.running import Scheduler

PAGE = Path(__file__).parents[1] / "docs" / "results" / "schedulers.md"
BEGIN, END = "<!-- table: written by `python benchmarks/schedulers.py --write` -->", "<!-- end of table -->"
TITLE = "seconds until all gangs are bound, and until half of them are"
_SECONDS = 600.0
# Programs by the first 15 characters of their names, as the kernel keeps them.
_CONTROL_PLANE = {"kube-apiserver": "API server", "etcd": "API server", "kube-controller": "controllers"}


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
def programs(plane: ControlPlane, entry: Entry, nodes: int) -> Iterator[dict[int, str]]:
    """Nodes, the operator with the backend and, for ours, the scheduler, each as users run them; by process id."""
    commands = {
        "nodes": ["nodes", f"--nodes={nodes}", "--gpus=8"],
        "operator": ["run", "grove", "backends"],
        **({"scheduler": ["run", *entry.services]} if entry.services else {}),
    }
    kubeconfig = f"--kubeconfig={plane.kubeconfig()}"
    running = {
        name: Program([sys.executable, "-m", "spinney.cli", *command, kubeconfig], plane.folder / f"{name}.log")
        for name, command in commands.items()
    }
    try:
        yield {program.pid: name for name, program in running.items()}
    finally:
        for program in running.values():
            program.stop()


async def install(client: Client) -> None:
    """Create the kinds of Grove and of our scheduler, and its queues."""
    for definition in crds():
        with suppress(AlreadyExists):
            await client.create(CustomResourceDefinition, definition)
    shares = {key: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for key in ("cpu", "memory", "gpu")}
    for name, parent in (("default-parent-queue", {}), ("default-queue", {"parentQueue": "default-parent-queue"})):
        await _until_accepted(client, Queue, {"metadata": {"name": name}, "spec": {"resources": shares, **parent}}, "")


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
    other = Scheduler(entry.program, plane) if entry.program else None
    if other is not None:
        # Its own kinds come first: KAI's are the same as some of ours.
        await other.install(client)
    await install(client)
    if other is not None:
        await other.start(client, Setup.AS_SHIPPED)
    elif not entry.services:
        plane.start_scheduler()
    with programs(plane, entry, nodes) as ours:
        caches = Caches(client)
        watching = asyncio.create_task(caches.run())
        try:
            await _ready_nodes(caches, nodes)
            # One gang ahead of the others: whoever has not started yet is not measured.
            await client.create(PodCliqueSet, pcs(entry, gangs, pods), "default")
            bound = _Bound(caches)
            await bound.reach(pods)
            before = _cpu()
            began = time.monotonic()
            waves = [client.create(PodCliqueSet, pcs(entry, index, pods), "default") for index in range(gangs)]
            await asyncio.gather(*waves)
            applied = time.monotonic() - began
            await bound.reach(pods * (gangs + 1))
            spent = _spent(before, ours)
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
        "cpu_seconds": {name: round(seconds, 1) for name, seconds in sorted(spent.items())},
    }


def _cpu() -> dict[int, float]:
    seconds: dict[int, float] = {}
    for pid in descendants():
        with suppress(OSError):
            seconds[pid] = cpu_seconds([pid])
    return seconds


def _spent(before: Mapping[int, float], ours: Mapping[int, str]) -> Counter[str]:
    """The processors' time by part; who belongs to none of the others is the scheduler."""
    names = descendants()
    spent: Counter[str] = Counter()
    for pid, seconds in _cpu().items():
        part = ours.get(pid) or _CONTROL_PLANE.get(names.get(pid, ""), "scheduler")
        spent[part] += seconds - before.get(pid, 0.0)
    return spent


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


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """The numbers as the page shows them."""
    lines = [
        "| | applied | median gang bound | all bound | CPU: scheduler | CPU: operator | CPU: API server |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in results:
        cpu = each["cpu_seconds"]
        times = [each["applied_seconds"], each["median_gang_seconds"], each["all_bound_seconds"]]
        cells = [*times, *(cpu.get(part, 0.0) for part in ("scheduler", "operator", "API server"))]
        lines.append(f"| {each['scheduler']} | {' | '.join(f'{cell:.1f} s' for cell in cells)} |")
    return "\n".join(lines)


def write_page(results: Sequence[Mapping[str, Any]]) -> None:
    """Draw the chart, and put it and the table between the page's marks."""
    text = PAGE.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    chart = f"![{TITLE}]({PAGE.with_suffix('.svg').name})"
    PAGE.write_text(f"{head}{BEGIN}\n{chart}\n\n{table(results)}\n{END}{tail}")
    last = {str(each["scheduler"]): float(each["all_bound_seconds"]) for each in results}
    median = {str(each["scheduler"]): float(each["median_gang_seconds"]) for each in results}
    rows(
        PAGE.with_suffix(".svg"),
        [Panel("seconds until all are bound", last), Panel("until half of them are", median)],
    )


def main() -> None:
    """Measure every scheduler, or some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(ENTRIES))
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--gangs", type=int, default=100)
    parser.add_argument("--pods", type=int, default=8)
    parser.add_argument("--write", action="store_true", help="put the numbers into docs/results/schedulers.md")
    options = parser.parse_args()
    results = []
    for entry in (ENTRIES[name] for name in options.only.split(",")):
        missing = lacking(entry.program) if entry.program else ""
        if missing:
            print(f"without {entry.title}: {missing}", file=sys.stderr)
            continue
        with TemporaryDirectory() as folder, ControlPlane(Path(folder), entry.kubernetes) as plane:
            plane.start_controllers()
            results.append(asyncio.run(measure(plane, entry, options.nodes, options.gangs, options.pods)))
        print(json.dumps(results[-1]), file=sys.stderr)
    if options.write:
        write_page(results)
    print(json.dumps({"nodes": options.nodes, "gangs": options.gangs, "results": results}, indent=2))


if __name__ == "__main__":
    main()
