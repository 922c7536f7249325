"""`spinney demo`: a cluster, three workloads on their way to running, and one that cannot fit and says why."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
import yaml
from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table

from spinney.answers.explanation import explanations
from spinney.answers.reading import read_cluster
from spinney.api import kai
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.api.podgang import PodGang
from spinney.app.event_loop import run_until_stopped
from spinney.app.gang_progress import STAGES, Progress
from spinney.app.laptop import Laptop, Options, laptop
from spinney.cli.dashboard_options import dashboard_options
from spinney.embedded.nodes.profile import Profile
from spinney.kube.caches.cache import Caches
from spinney.kube.client.client import Client
from spinney.kube.client.discovery import Discovery
from spinney.kube.clock import SystemClock
from spinney.kube.logs import configure
from spinney.sim.expansion import expand
from spinney.web.settings import DashboardSettings

# The gangs of the demo and the number of their pods.
GANGS = {"inference-0": 13, "evaluation-0": 4, "training": 2}
TOO_LARGE = "too-large"
_NEEDED = ("grove", "backends", "scheduler", "binder", "podgrouper")
# Seconds where it works; a busy laptop gets the time that it needs.
_RUN_SECONDS = 180.0
_WHY_SECONDS = 60.0
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
@click.option("--port", default=0, help="Where to listen on 127.0.0.1. Default: a free port.")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(".spinney/kubeconfig"),
    show_default=True,
    help="Where to write how kubectl gets in.",
)
@dashboard_options
def demo(*, then_exit: bool, nodes: int, port: int, kubeconfig: Path, dashboard: DashboardSettings | None) -> None:
    """Show gangs on their way from created to running, in a cluster in this process."""
    configure(level="warning")
    console = Console()
    where = kubeconfig.resolve()

    async def main() -> None:
        options = Options(nodes=Profile(count=nodes), kubeconfig=where, port=port, dashboard=dashboard, expand=expand)
        async with laptop(options) as running:
            if running.dashboard:
                console.print(f"Watch it at {running.dashboard}", highlight=False)
            await _show(console, running)
            if not then_exit:
                console.print(f"\nThe cluster serves on at {running.url} until Ctrl-C. To look around:")
                console.print(f"  export KUBECONFIG={where}", highlight=False, soft_wrap=True)
                console.print("  kubectl get pcs,podgangs,pods", highlight=False)
                await running.failed()

    run_until_stopped(main())


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
    loop = asyncio.get_running_loop()
    start = loop.time()
    progress = Progress(GANGS, lambda: loop.time() - start)
    pods, gangs = caches.of(Pod), caches.of(PodGang)
    await pods.synced()
    await gangs.synced()
    changed = asyncio.Event()
    pods.on_change(progress.pod)
    gangs.on_change(progress.gang)
    pods.on_change(lambda _: changed.set())
    for name in ("1-inference", "2-evaluation", "3-training"):
        await apply_file(client, name)
    with Live(console=console, auto_refresh=False) as live:
        try:
            async with asyncio.timeout(_RUN_SECONDS):
                while not progress.done:
                    changed.clear()
                    live.update(_table(progress), refresh=True)
                    await changed.wait()
                    # A wave of changes is drawn once.
                    await asyncio.sleep(0.05)
        except TimeoutError:
            stuck = ", ".join(f"{gang.name} is {gang.stage}" for gang in progress.gangs.values() if not gang.done)
            raise DemoFailed(f"not everything runs after {_RUN_SECONDS:g} s: {stuck}") from None
        live.update(_table(progress), refresh=True)


async def _why_not(console: Console, client: Client, caches: Caches) -> None:
    """Apply a gang that cannot fit, and once the scheduler has given its reason, print what `spinney explain` says."""
    groups = caches.of(kai.PodGroup)
    await groups.synced()
    console.print("\nNow one that cannot fit: 12 × 8 GPUs in one rack.")
    changed = asyncio.Event()
    groups.on_change(lambda _: changed.set())
    await apply_file(client, f"4-{TOO_LARGE}")
    try:
        async with asyncio.timeout(_WHY_SECONDS):
            while not any(group.status.scheduling_conditions for group in groups if TOO_LARGE in group.name):
                changed.clear()
                await changed.wait()
    except TimeoutError:
        raise DemoFailed(f"no reason for {TOO_LARGE} after {_WHY_SECONDS:g} s") from None
    cluster = await read_cluster(client, SystemClock(), "default")
    console.print(f"$ spinney explain {TOO_LARGE}", highlight=False, style="bold")
    for explanation in explanations(cluster, "podcliqueset", TOO_LARGE, "default"):
        for line in explanation.sentences:
            console.print(line, highlight=False, markup=False, soft_wrap=True)


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


def _table(progress: Progress) -> Table:
    """Per gang and stage how many pods have got there, and after how many seconds the last one did."""
    table = Table("gang", "placed by", *STAGES, box=box.SIMPLE)
    for gang in progress.gangs.values():
        cells = []
        for stage in STAGES:
            seconds = gang.complete.get(stage)
            count = f"{len(gang.reached[stage])}/{gang.pods}"
            cells.append(count if seconds is None else f"[green]{count}[/green]\n{seconds:.2f} s")
        # A Job's pods are never gated.
        if not gang.reached["gated"] and gang.reached["released"]:
            cells[1] = "–"
        table.add_row(gang.name, gang.placed_by, *cells)
    return table
