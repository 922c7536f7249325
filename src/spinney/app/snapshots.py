"""One moment of a cluster, live or from a snapshot, for commands that explain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from spinney.api.meta import convert
from spinney.api.schedulerfile import SchedulerFile
from spinney.kube.client.https import connect
from spinney.kube.client.kubeconfig import find_server
from spinney.kube.clock import SystemClock
from spinney.scheduler.config import ConfigError
from spinney.scheduler.intake.config_file import from_file
from spinney.scheduler.intake.snapshot import Snapshot, SnapshotError, read
from spinney.scheduler.service.capture import capture
from spinney.scheduler.service.feed import Shard
from spinney.scheduler.service.snapshot_view import Picture

# What a snapshot says about its scheduler that a plan depends on.
_SETTINGS = ("actions", "tiers", "queueDepthPerAction")


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
    """A snapshot as the scheduler of a shard sees it, set up as the file says: its own scheduler wrote that down."""
    try:
        file = convert(
            SchedulerFile, {key: found for key, found in snapshot.config.items() if found and key in _SETTINGS}
        )
        config = from_file(file)
    except (ConfigError, msgspec.ValidationError) as error:
        raise click.ClickException(f"the configuration in the snapshot: {error}") from error
    parameters = snapshot.parameters
    pool = parameters.get("partitionParams") or {}
    shard = Shard(
        parameters.get("schedulerName") or file.scheduler_name,
        pool.get("NodePoolLabelKey") or file.node_pool_label_key,
        node_pool or pool.get("NodePoolLabelValue", ""),
    )
    return Picture(snapshot.objects, SystemClock(), shard, config)


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
            return Snapshot(await capture(client))
        finally:
            await client.close()

    return asyncio.run(fetch())
