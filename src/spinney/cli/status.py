"""`spinney status`: PodCliqueSets as trees of gangs, cliques and pods, and what each waits for."""

from __future__ import annotations

import asyncio
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text
from rich.tree import Tree

from spinney.api.core import Node, Pod
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.meta import Json
from spinney.api.podgang import PodGang
from spinney.cli.options import Connection, connection_options
from spinney.cli.output import print_json
from spinney.grove.model.metadata import MANAGED
from spinney.grove.status.tree import Objects, trees
from spinney.kube.caches.cache import Cache, Caches
from spinney.kube.client.client import Client
from spinney.kube.client.https import connect
from spinney.kube.clock import SystemClock

_COLOURS = {"Running": "green", "Ready": "green", "Starting": "cyan", "Pending": "yellow", "Gated": "yellow"}
_REDRAW_SECONDS = 0.5


@click.command(
    epilog="""\b
Examples:
  spinney status                       every set of the namespace
  spinney status inference -w          one set, live until Ctrl-C
  spinney status -A -o json | jq '.[].gangs[].phase'
"""
)
@click.argument("name", required=False, default="", metavar="[SET]")
@click.option("--namespace", "-n", default="", help="Default: that of the context.")
@click.option("--all-namespaces", "-A", is_flag=True, help="Sets of all namespaces.")
@click.option("--watch", "-w", is_flag=True, help="Follow until Ctrl-C.")
@click.option("--output", "-o", type=click.Choice(["tree", "json"]), default="tree", show_default=True)
@connection_options
def status(
    *, name: str, namespace: str, all_namespaces: bool, watch: bool, output: str, connection: Connection
) -> None:
    """Show sets, their gangs, cliques and pods."""
    server = connection.server()
    place = "" if all_namespaces else namespace or server.namespace
    # A set is found by name in one namespace only.
    if name and all_namespaces:
        raise click.UsageError("a SET and --all-namespaces do not go together")
    client = connect(server)

    async def main() -> None:
        try:
            if watch:
                await _follow(client, place, name)
                return
            sets = await look(client, place, name)
            if name and not sets:
                raise click.ClickException(f"no PodCliqueSet {name!r} in namespace {place!r}")
            if output == "json":
                print_json(sets)
            else:
                Console().print(render(sets, place))
        finally:
            await client.close()

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        return


async def look(client: Client, namespace: str, name: str) -> list[Json]:
    """The trees of the sets of a namespace, or of one of them."""
    sets, gangs, cliques, pods, nodes = await asyncio.gather(
        client.list(PodCliqueSet, namespace),
        client.list(PodGang, namespace),
        client.list(PodClique, namespace),
        client.list(Pod, namespace, labels=MANAGED),
        client.list(Node),
    )
    objects = Objects(sets.items, gangs.items, cliques.items, pods.items, nodes.items)
    return trees(objects, name, SystemClock().now())


async def _follow(client: Client, namespace: str, name: str) -> None:
    """Redraw whenever something changed, from watches."""
    caches = Caches(client)
    changed = asyncio.Event()
    watched: list[Cache[Any]] = [
        *(caches.of(kind, namespace=namespace) for kind in (PodCliqueSet, PodGang, PodClique)),
        caches.of(Pod, labels=MANAGED, namespace=namespace),
        caches.of(Node),
    ]
    for cache in watched:
        cache.on_change(lambda _: changed.set())
    running = asyncio.create_task(caches.run())
    try:
        await caches.synced()
        with Live(console=Console(), auto_refresh=False) as live:
            while True:
                changed.clear()
                objects = Objects(*(list(cache) for cache in watched))
                live.update(render(trees(objects, name, SystemClock().now()), namespace), refresh=True)
                await changed.wait()
                await asyncio.sleep(_REDRAW_SECONDS)
    finally:
        running.cancel()


def render(sets: list[Json], namespace: str) -> Group:
    """The trees for a terminal."""
    if not sets:
        where = f"namespace {namespace}" if namespace else "any namespace"
        return Group(Text(f"no PodCliqueSets in {where}"))
    return Group(*(_set(tree) for tree in sets))


def _set(tree: Json) -> Tree:
    root = Tree(_line(f"{tree['namespace']}/{tree['name']}", f"{tree['ready']} ready", tree["age"], tree["waitsFor"]))
    for gang in tree["gangs"]:
        score = f" score {gang['score']:g}" if gang["score"] is not None else ""
        label = f"gang {gang['name']} [{gang['backend']}]{score}"
        branch = root.add(_line(label, gang["phase"], gang["age"], gang["waitsFor"]))
        for clique in gang["cliques"]:
            counts = f"{clique['ready']}/{clique['replicas']} ready, at least {clique['minimum']}"
            leaves = branch.add(_line(clique["name"], counts))
            for pod in clique["pods"]:
                place = f"{pod['node']} {pod['rack']}".strip()
                leaves.add(_line(pod["name"], pod["state"], pod["age"], pod["waitsFor"] or place))
    return root


def _line(name: str, state: str, age: str = "", detail: str = "") -> Text:
    line = Text(name)
    line.append(f"  {state}", style=_COLOURS.get(state, ""))
    for text in (age, detail):
        if text:
            line.append(f"  {text}", style="dim")
    return line
