"""The dashboard under load: first paint, frames, memory, and what a reader costs the server.

The server runs in a process of its own on rows of a made-up cluster, so that it is measured and not the scheduler.
Rows change a given number of times a second and are published four times a second, as they are for a real cluster. The
browser is this system's Chromium, without a GPU: it draws with the same cores. Frames are counted on the cluster map
while it shows every node, the most that any page draws.

Usage: python benchmarks/dashboard.py [--seconds 10] [--out DIR] [--write]

`--write` puts the numbers into docs/results/dashboard.md as well.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path

import aiohttp
from _chart import Panel, bars
from _machine import cpu_seconds, resident
from _synthetic_cluster import SyntheticCluster
from playwright.async_api import Browser, CDPSession

from spinney.kube.client.client import Client
from spinney.testing.browser import find_chromium, launched
from spinney.web.board import Merged
from spinney.web.endpoints import Endpoints
from spinney.web.limits import ClientLimits
from spinney.web.rights import Reviewer
from spinney.web.server import application, serve
from spinney.web.settings import DashboardSettings, Limits
from spinney.web.users import Anyone
from spinney.web.viewer import KindsServed, Viewers

PAGE = Path(__file__).parents[1] / "docs" / "results" / "dashboard.md"
BEGIN, END = "<!-- table: written by `python benchmarks/dashboard.py --write` -->", "<!-- end of table -->"
EVERY = 0.25
# Nodes, pods, changes a second.
CROWDS = ((125, 1_000, 500), (1_000, 10_000, 500), (10_000, 80_000, 500))
READERS = 20
FRAMES = """seconds => new Promise(done => {
  const times = [];
  const end = performance.now() + seconds * 1000;
  const tick = now => { times.push(now); now < end ? requestAnimationFrame(tick) : done(times); };
  requestAnimationFrame(tick);
})"""


@dataclass
class Server:
    """A dashboard in a process of its own."""

    link: str
    pid: int


async def serve_rows(nodes: int, pods: int, rate: int) -> None:
    """Serve a made-up cluster that changes so often a second, until stdin ends; the first line out is the link."""
    cluster = SyntheticCluster(nodes, pods)
    settings = DashboardSettings(port=0, limits=Limits(requests_per_second=1e6, burst=10**6, streams=1000))
    limits = ClientLimits(settings.limits)
    nobody: Client = None  # type: ignore[assignment]  # without a login nothing is asked of a cluster
    viewers = Viewers(cluster.board, Reviewer(nobody, asyncio.get_running_loop().time), KindsServed(nobody))
    endpoints = Endpoints(settings, Anyone(), viewers, cluster, limits)

    async def change() -> None:
        while True:
            await asyncio.sleep(EVERY)
            if rate:
                cluster.publish(await asyncio.to_thread(_changed, cluster, round(rate * EVERY)))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(change())
        tasks.create_task(
            serve(application(settings, endpoints, limits), settings, lambda link: print(link, flush=True))
        )
        await asyncio.to_thread(sys.stdin.read)
        os._exit(0)


def _changed(cluster: SyntheticCluster, count: int) -> Merged:
    cluster.change(count)
    return cluster.merged()


@asynccontextmanager
async def serving(nodes: int, pods: int, rate: int) -> AsyncIterator[Server]:
    """A server for the block."""
    arguments = (__file__, "--serve", str(nodes), str(pods), str(rate))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Server((await process.stdout.readline()).decode().strip(), process.pid)
    finally:
        process.stdin.close()
        await process.wait()


@dataclass
class Crowd:
    """What a browser shows of a cluster, and how."""

    nodes: int
    pods: int
    changes_per_second: int
    first_paint_ms: float
    first_rows_ms: float
    frames_per_second: float
    frame_p50_ms: float
    frame_p99_ms: float
    work_per_frame_ms: float
    heap_mb: float


async def look(browser: Browser, nodes: int, pods: int, rate: int, seconds: float) -> Crowd:
    """Open the map, then count frames while rows change."""
    async with serving(nodes, pods, rate) as server:
        context = await browser.new_context(viewport={"width": 1600, "height": 1000})
        page = await context.new_page()
        page.set_default_timeout(120_000)
        await page.goto(f"{server.link}map")
        await page.wait_for_selector(".live.is-live")
        await page.wait_for_selector(".map canvas")
        rows = await page.evaluate("performance.now()")
        paint = await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        # The first drawing of very many nodes is no part of the frames.
        await page.evaluate(FRAMES, 1)
        session = await context.new_cdp_session(page)
        await session.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = await _metrics(session)
        times = await page.evaluate(FRAMES, seconds)
        after = await _metrics(session)
        gaps = sorted(later - earlier for earlier, later in pairwise(times))
        await context.close()
    return Crowd(
        nodes=nodes,
        pods=pods,
        changes_per_second=rate,
        first_paint_ms=round(paint, 1),
        first_rows_ms=round(rows, 1),
        frames_per_second=round(len(gaps) / (sum(gaps) / 1000), 1),
        frame_p50_ms=round(statistics.median(gaps), 1),
        frame_p99_ms=round(gaps[int(len(gaps) * 0.99)], 1),
        work_per_frame_ms=round(1000 * (after["TaskDuration"] - before["TaskDuration"]) / len(gaps), 2),
        heap_mb=round(after["JSHeapUsedSize"] / 1e6, 1),
    )


async def _metrics(session: CDPSession) -> dict[str, float]:
    """What the page's main thread has done: seconds of its own CPU, so that others on the machine do not count."""
    answer = await session.send("Performance.getMetrics")
    return {each["name"]: each["value"] for each in answer["metrics"]}


async def cost_of_readers(seconds: float, rate: int = 50) -> dict[str, float]:
    """CPU of the server with and without readers of all kinds, as a part of one core for each reader."""
    async with serving(1_000, 10_000, rate) as server, aiohttp.ClientSession() as session:
        alone = await _worked(server.pid, seconds)
        streams = [asyncio.create_task(_read(session, server.link)) for _ in range(READERS)]
        await asyncio.sleep(2)
        read = await _worked(server.pid, seconds)
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        return {
            "readers": READERS,
            "changes_per_second": rate,
            "server_alone_percent": round(100 * alone, 2),
            "percent_per_reader": round(100 * max(read - alone, 0.0) / READERS, 3),
            "server_mb": round(resident([server.pid]) / 1e6, 1),
        }


async def _worked(pid: int, seconds: float) -> float:
    loop = asyncio.get_running_loop()
    begun, cpu = loop.time(), cpu_seconds([pid])
    await asyncio.sleep(seconds)
    return (cpu_seconds([pid]) - cpu) / (loop.time() - begun)


async def _read(session: aiohttp.ClientSession, link: str) -> None:
    async with session.get(f"{link}api/v1/stream", timeout=aiohttp.ClientTimeout(total=None)) as stream:
        async for _ in stream.content.iter_any():
            pass


async def measured(seconds: float) -> tuple[list[Crowd], dict[str, float]]:
    """Everything."""
    path = find_chromium()
    if path is None:
        raise SystemExit("no Chromium on this machine: install Debian's package `chromium`")
    async with launched(path) as browser:
        crowds = []
        for crowd in CROWDS:
            crowds.append(await look(browser, *crowd, seconds))
            print(crowds[-1], file=sys.stderr, flush=True)
    return crowds, await cost_of_readers(seconds)


def write_page(crowds: list[Crowd], server: dict[str, float], load: float) -> None:
    """Put the numbers between the marks of the page, with the machine and its load before the measurement."""
    head, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    titles = "nodes|pods|first paint|live rows|frames a second|99 % of frames within|main thread, each frame|heap"
    rows = [
        f"| {each.nodes:,} | {each.pods:,} | {each.first_paint_ms / 1000:.2f} s | {each.first_rows_ms / 1000:.1f} s "
        f"| {each.frames_per_second:.0f} | {each.frame_p99_ms:.0f} ms | {each.work_per_frame_ms:.1f} ms "
        f"| {each.heap_mb:.0f} MB |"
        for each in crowds
    ]
    measured_on = f"Measured on {date.today()}: {platform.machine()}, {os.cpu_count()} cores, load {load:.1f} before."
    readers = (
        f"A connected reader costs the server {server['percent_per_reader']:.2f} % of a core at "
        f"{server['changes_per_second']} changes a second ({server['readers']} readers of all kinds, 1,000 nodes and "
        f"10,000 pods; the aim is 2 %). Keeping the rows costs {server['server_alone_percent']:.1f} %, and the server "
        f"takes {server['server_mb']:.0f} MB."
    )
    table = "\n".join((f"| {titles.replace('|', ' | ')} |", "|---" * 8 + "|", *rows))
    PAGE.write_text(f"{head}{BEGIN}\n{measured_on}\n\n{table}\n\n{readers}\n{END}{tail}")


def main(seconds: float, out: Path, write: Callable[[list[Crowd], dict[str, float], float], None]) -> None:
    """Measure everything and write it down."""
    load = os.getloadavg()[0]
    crowds, server = asyncio.run(measured(seconds))
    write(crowds, server, load)
    result = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} before",
        "crowds": [asdict(crowd) for crowd in crowds],
        "server": server,
    }
    print(json.dumps(result, indent=2))
    out.mkdir(parents=True, exist_ok=True)
    (out / "dashboard.json").write_text(json.dumps(result, indent=2) + "\n")
    names = [f"{crowd.nodes:,} nodes" for crowd in crowds]
    panels = [
        Panel("first paint, ms", dict(zip(names, [crowd.first_paint_ms for crowd in crowds], strict=True))),
        Panel("frames a second", dict(zip(names, [crowd.frames_per_second for crowd in crowds], strict=True))),
        Panel("work per frame, ms", dict(zip(names, [crowd.work_per_frame_ms for crowd in crowds], strict=True))),
        Panel("heap, MB", dict(zip(names, [crowd.heap_mb for crowd in crowds], strict=True))),
    ]
    bars(out / "dashboard.png", panels)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out")
    parser.add_argument("--write", action="store_true", help="put the numbers into docs/results/dashboard.md")
    parser.add_argument("--serve", nargs=3, type=int, metavar=("NODES", "PODS", "RATE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve_rows(*options.serve))
    else:
        main(options.seconds, options.out, write_page if options.write else lambda *_: None)
