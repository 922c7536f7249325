"""Take pictures of every page of the dashboard: light, dark and on a phone; of an empty, a busy and a large cluster."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import aiohttp
from busy_cluster import NODES, BusyCluster
from dashboard import serving
from PIL import Image
from playwright.async_api import Browser, Page

from spinney.app.laptop import Options, laptop
from spinney.embedded.nodes.profile import Profile
from spinney.kube.logs import configure
from spinney.testing.browser import find_chromium, launched
from spinney.web.settings import DashboardSettings, Limits

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "users" / "pictures"
GENEROUS = DashboardSettings(port=0, limits=Limits(requests_per_second=1000.0, burst=10000))
QUESTION = quote('[{"type":"addNodes","count":4,"gpus":8},{"type":"setLimit","queue":"speech","gpus":96}]')
# Name → address; LAST stands for the newest moment that is recorded, SHARED for a node with a GPU that pods share.
PAGES = {
    "overview": "/",
    "map": "/map",
    "gpu": "/map?node=SHARED",
    "map-workloads": "/map?colour=gang",
    "map-priority": "/map?colour=priority",
    "map-fragmentation": "/map?colour=fragmentation",
    "map-utilisation": "/map?colour=utilisation",
    "workloads": "/workloads",
    "workload": "/workloads/assistant/podcliqueset.grove.io/chat",
    "waiting-workload": "/workloads/language/podcliqueset.grove.io/mixture-of-experts",
    "queues": "/queues",
    "queue": "/queues?queue=speech",
    "waiting": "/waiting",
    "evictions": "/evictions",
    "what-if": f"/what-if?changes={QUESTION}",
    "time-machine": "/history?at=LAST",
    "past": "/workloads?at=LAST",
    "login": "/login",
}
LARGE = ("map", "workloads", "queues", "waiting", "overview")
EMPTY = ("overview", "map", "workloads", "queues", "waiting", "evictions", "what-if", "time-machine")
# GPUs and workloads by which the busy cluster is known to have settled.
FULL, WAITING = 440, 4
# What README and the documentation show.
SHOWN = {
    "busy-overview-dark": "overview",
    "busy-map-dark": "map",
    "busy-workload-light": "workload",
    "busy-queues-light": "queues",
    "busy-what-if-light": "what-if",
    "busy-map-phone": "phone",
}


@dataclass(frozen=True)
class Look:
    """How a page is looked at."""

    name: str
    width: int = 1360
    height: int = 860
    dark: bool = False


LOOKS = (Look("light"), Look("dark", dark=True), Look("phone", width=390, height=844))


@asynccontextmanager
async def empty() -> AsyncIterator[str]:
    """A cluster without nodes and workloads."""
    async with laptop(Options(nodes=Profile(count=0), dashboard=GENEROUS)) as running:
        yield running.dashboard


@asynccontextmanager
async def busy() -> AsyncIterator[str]:
    """64 nodes, and teams that share them."""
    async with laptop(Options(nodes=NODES, dashboard=GENEROUS)) as running:
        await BusyCluster(running).fill()
        await shown(running.dashboard)
        yield running.dashboard


async def shown(link: str) -> None:
    """Wait until the dashboard has seen that the cluster is full, and what still waits."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(300):
        while True:
            async with session.get(f"{link}api/v1/overview") as answer:
                overview = await answer.json()
            if overview["gpus"]["used"] > FULL and overview["workloads"].get("Waiting", 0) >= WAITING:
                return
            await asyncio.sleep(1)


@asynccontextmanager
async def large() -> AsyncIterator[str]:
    """1,000 nodes and 10,000 pods, made up."""
    async with serving(1000, 10_000, 0) as server:
        yield server.link


SCENES = {"empty": (empty, EMPTY), "busy": (busy, tuple(PAGES)), "large": (large, LARGE)}


async def take(browser: Browser, scene: str, link: str, names: tuple[str, ...], folder: Path) -> None:
    """All pages of a scene in all looks."""
    for look in LOOKS:
        scheme = "dark" if look.dark else "light"
        context = await browser.new_context(
            viewport={"width": look.width, "height": look.height}, color_scheme=scheme, reduced_motion="reduce"
        )
        page = await context.new_page()
        page.set_default_timeout(120_000)
        for name in names:
            await show(page, link.rstrip("/"), PAGES[name])
            file = folder / f"{scene}-{name}-{look.name}.png"
            await page.screenshot(path=file)
            print(file.name, flush=True)
        await context.close()


async def show(page: Page, link: str, address: str) -> None:
    """Open an address and wait until everything on it is there."""
    if "LAST" in address:
        answer = await (await page.request.get(f"{link}/api/v1/history/range")).json()
        address = address.replace("LAST", answer["to"] or "")
    if "SHARED" in address:
        nodes = (await (await page.request.get(f"{link}/api/v1/nodes")).json())["items"]
        shared = next(node for node in nodes for gpu in node["gpus"] if len(gpu["sharers"]) > 1)
        address = address.replace("SHARED", shared["name"])
    await page.goto(link + address)
    await page.wait_for_selector(".live.is-live, .live.is-past, .login")
    await page.locator("[aria-busy]").first.wait_for(state="detached")
    # Canvases draw with the frame after their rows.
    await page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


async def main(scenes: list[str], folder: Path) -> None:
    """Take all pictures."""
    configure(level="warning")
    path = find_chromium()
    if path is None:
        raise SystemExit("no Chromium on this machine: install Debian's package `chromium`")
    async with launched(path, "--hide-scrollbars") as browser:
        for scene in scenes:
            made, names = SCENES[scene]
            async with made() as link:
                await take(browser, scene, link, names, folder)


def keep_shown(folder: Path) -> None:
    """Put what the documentation shows beside it, with few colours, so that the files are small."""
    PICTURES.mkdir(exist_ok=True)
    for source, name in SHOWN.items():
        file = folder / f"{source}.png"
        if file.exists():
            with Image.open(file) as image:
                image.convert("RGB").quantize(128).save(PICTURES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", action="append", choices=list(SCENES), help="Only this one. Default: all.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "screenshots")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(options.scene or list(SCENES), options.out))
    keep_shown(options.out)
