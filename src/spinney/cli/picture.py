"""One moment of a cluster, live or from a snapshot, for commands that explain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from spinney.api.meta import Json, Resource
from spinney.api.schedulerfile import SchedulerFile
from spinney.kube.client import Client
from spinney.kube.clock import SystemClock
from spinney.kube.config import find_server
from spinney.kube.errors import NotFound
from spinney.kube.https import connect
from spinney.scheduler.file import from_file
from spinney.scheduler.service.feed import Shard
from spinney.scheduler.service.frozen import Picture
from spinney.scheduler.snapshot import KINDS, Snapshot, SnapshotError, read

_PAGE = "500"


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where to look: a cluster, or a snapshot of one."""
    for option in (
        click.option("--kubeconfig", default="", metavar="FILE", help="Instead of $KUBECONFIG or ~/.kube/config."),
        click.option("--context", default="", help="A context of the kubeconfig, instead of the current one."),
        click.option(
            "--snapshot",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="A file of `spinney snapshot save` (or of KAI's /get-snapshot) instead of a cluster.",
        ),
        click.option("--node-pool", default="", help="The shard to look at; the default shard has no name."),
    ):
        command = option(command)
    return command


def take_picture(kubeconfig: str, context: str, snapshot: Path | None, node_pool: str) -> Picture:
    """The cluster as the scheduler of a shard sees it now."""
    found = load_snapshot(snapshot) if snapshot is not None else fetch_snapshot(kubeconfig, context)
    return picture_of(found, node_pool)


def picture_of(snapshot: Snapshot, node_pool: str = "") -> Picture:
    """A snapshot as the scheduler of a shard sees it."""
    file = SchedulerFile()
    return Picture(
        snapshot.objects,
        SystemClock(),
        Shard(file.scheduler_name, file.node_pool_label_key, node_pool),
        from_file(file),
    )


def load_snapshot(path: Path) -> Snapshot:
    """A snapshot from a file; one that cannot be read is a usage error."""
    try:
        return read(path.read_bytes())
    except SnapshotError as error:
        raise click.BadParameter(f"{path}: {error}", param_hint="--snapshot") from error


def fetch_snapshot(kubeconfig: str, context: str) -> Snapshot:
    """Everything the scheduler looks at, read from a cluster."""

    async def fetch() -> Snapshot:
        client = connect(find_server(kubeconfig, context))
        try:
            return Snapshot({kind.resource: await _all(client, kind.resource) for kind in KINDS.values()})
        finally:
            await client.close()

    return asyncio.run(fetch())


async def _all(client: Client, resource: Resource) -> list[Json]:
    """Every object of a kind as plain data; none where the kind is not served."""
    items: list[Json] = []
    token = ""
    while True:
        query = [("limit", _PAGE)] + ([("continue", token)] if token else [])
        try:
            response = await client.call("GET", resource.path(), query)
        except NotFound:
            return items
        page = msgspec.json.decode(response.body)
        items += page.get("items") or []
        token = page.get("metadata", {}).get("continue", "")
        if not token:
            return items
