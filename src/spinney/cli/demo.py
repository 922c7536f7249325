"""`spinney demo`: a cluster, three workloads on their way to running, and one that cannot fit and says why."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import click
import yaml
from rich.console import Console
from rich.live import Live
from rich.table import Table

from spinney.api import kai
from spinney.api.conditions import find
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.api.podgang import PodGang
from spinney.cli.laptop import Laptop, Options, laptop
from spinney.cli.progress import Row, rows
from spinney.cli.run import run_loop
from spinney.embedded.nodes.profile import Profile
from spinney.kube.cache import Caches
from spinney.kube.client import Client
from spinney.kube.discovery import Discovery

# The gangs of the demo and the number of their pods.
GANGS = {"inference-0": 13, "evaluation-0": 4, "training": 2}
TOO_LARGE = "too-large-0"
_NEEDED = ("grove", "backends", "scheduler", "binder", "podgrouper")
_RUN_SECONDS = 60.0
_WHY_SECONDS = 20.0
_FOLDERS = (Path(__file__).parents[1] / "examples", Path(__file__).parents[3] / "examples")


class DemoFailed(click.ClickException):
    """The demo did not get where it should."""


@click.command(
    epilog="""\b
Examples:
  spinney demo            watch it, then use the cluster with kubectl until Ctrl-C
  spinney demo --exit     end with 0 once everything runs
"""
)
@click.option("--exit", "then_exit", is_flag=True, help="End once everything runs, instead of serving on.")
@click.option("--nodes", default=64, show_default=True, help="How many simulated nodes.")
def demo(*, then_exit: bool, nodes: int) -> None:
    """Show gangs on their way from created to running, in a cluster in this process."""
    console = Console()

    async def main() -> None:
        async with laptop(Options(nodes=Profile(count=nodes))) as running:
            await _show(console, running)
            if not then_exit:
                console.print("\nThe cluster serves on. Ctrl-C ends it.")
                await asyncio.Event().wait()

    run_loop(main())


async def _show(console: Console, running: Laptop) -> None:
    missing = [name for name in _NEEDED if name not in running.components]
    if missing:
        raise DemoFailed(f"this build has no {', '.join(missing)}: nothing would place the gangs")
    client = running.client
    caches = Caches(client)
    life = asyncio.create_task(caches.run())
    try:
        await _to_running(console, client, caches)
        await _why_not(console, client, caches)
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


async def _to_running(console: Console, client: Client, caches: Caches) -> None:
    pods, gangs = caches.of(Pod), caches.of(PodGang)
    await pods.synced()
    await gangs.synced()
    changed = asyncio.Event()
    pods.on_change(lambda _: changed.set())
    for name in ("1-inference", "2-evaluation", "3-training"):
        await apply_file(client, name)
    with Live(console=console, auto_refresh=False) as live:
        try:
            async with asyncio.timeout(_RUN_SECONDS):
                while True:
                    changed.clear()
                    current = rows(gangs, pods, GANGS)
                    live.update(_table(current), refresh=True)
                    if all(row.done for row in current):
                        return
                    await changed.wait()
                    # A wave of changes is drawn once.
                    await asyncio.sleep(0.05)
        except TimeoutError:
            stuck = ", ".join(f"{row.gang} is {row.stage}" for row in rows(gangs, pods, GANGS) if not row.done)
            raise DemoFailed(f"not everything runs after {_RUN_SECONDS:g} s: {stuck}") from None


async def _why_not(console: Console, client: Client, caches: Caches) -> None:
    """Apply a gang that cannot fit, and print what the API says about it."""
    gangs, groups, pods = caches.of(PodGang), caches.of(kai.PodGroup), caches.of(Pod)
    for cache in (gangs, groups):
        await cache.synced()
    console.print("\nNow one that cannot fit: 12 × 8 GPUs in one rack.")
    await apply_file(client, "4-too-large")
    changed = asyncio.Event()
    for each in (gangs, groups, pods):
        each.on_change(lambda _: changed.set())
    try:
        async with asyncio.timeout(_WHY_SECONDS):
            while not (found := reasons(gangs, groups, pods)):
                changed.clear()
                await changed.wait()
    except TimeoutError:
        raise DemoFailed(f"no reason for {TOO_LARGE} after {_WHY_SECONDS:g} s") from None
    for where, why in found:
        console.print(f"  [bold]{where}[/bold]: {why}", highlight=False)


def reasons(gangs: Iterable[PodGang], groups: Iterable[kai.PodGroup], pods: Iterable[Pod]) -> list[tuple[str, str]]:
    """Why the gang that cannot fit is not placed, from its objects; empty until the gang itself says so."""
    found = []
    for gang in gangs:
        scheduled = find(gang.status.conditions, "Scheduled") if gang.name == TOO_LARGE else None
        if scheduled is not None and scheduled.status == "False" and scheduled.message:
            found.append((f"PodGang {gang.name}", scheduled.message))
    for group in groups:
        if TOO_LARGE in group.name:
            found += [(f"PodGroup {group.name}", each.message) for each in group.status.scheduling_conditions]
    for pod in pods:
        scheduled = find(pod.status.conditions, "PodScheduled")
        if TOO_LARGE in pod.name and scheduled is not None and scheduled.reason == "Unschedulable":
            found.append((f"Pod {pod.name}", scheduled.message))
            break
    kinds = {where.partition(" ")[0] for where, _ in found}
    return found if {"PodGang", "PodGroup"} <= kinds else []


async def apply_file(client: Client, name: str) -> None:
    """Create the objects of one of the demo's files."""
    folder = next(folder for folder in _FOLDERS if folder.is_dir())
    discovery = Discovery(client)
    document: Json
    for document in yaml.safe_load_all((folder / "demo" / f"{name}.yaml").read_text()):
        resource = await discovery.resource(document["apiVersion"], document["kind"])
        if resource is None:
            raise DemoFailed(f"{name}.yaml: {document['kind']} of {document['apiVersion']} is not served")
        await client.create(resource, document, document["metadata"]["namespace"])


def _table(current: list[Row]) -> Table:
    table = Table(title="created → gated → released → bound → running")
    for column in ("gang", "placed by"):
        table.add_column(column)
    for column in ("created", "gated", "released", "bound", "running"):
        table.add_column(column, justify="right")
    table.add_column("now")
    for row in current:
        table.add_row(
            row.gang,
            row.placed_by,
            f"{row.created}/{row.pods}",
            str(row.gated),
            str(row.released),
            str(row.bound),
            str(row.running),
            f"[green]{row.stage}[/green]" if row.done else row.stage,
        )
    return table
