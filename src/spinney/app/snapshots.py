"""Snapshots of a cluster, and what the scheduler plans on one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from spinney.answers.cluster import Cluster
from spinney.answers.reading import cluster_at
from spinney.api.meta import convert
from spinney.api.quantity import QuantityError
from spinney.api.schedulerfile import SchedulerFile
from spinney.app.errors import UserError, wrong_value
from spinney.kube.client.https import connect
from spinney.kube.client.kubeconfig import Server
from spinney.kube.clock import SystemClock
from spinney.scheduler.config import Config, ConfigError
from spinney.scheduler.intake.config_file import from_file
from spinney.scheduler.intake.snapshot import Snapshot, SnapshotError, read
from spinney.scheduler.service.capture import capture
from spinney.scheduler.service.shard import Shard
from spinney.scheduler.service.snapshot_view import Picture

# What a snapshot says about its scheduler that a plan depends on.
_SETTINGS = ("actions", "tiers", "queueDepthPerAction")


def picture_of(snapshot: Snapshot, node_pool: str = "") -> Picture:
    """A snapshot as the scheduler of a shard sees it, set up as the file says: its own scheduler wrote that down."""
    shard, config = _setup(snapshot, node_pool)
    with _telling_bad_objects():
        return Picture(snapshot.objects, SystemClock(), shard, config)


def cluster_in(snapshot: Snapshot, node_pool: str = "") -> Cluster:
    """A snapshot as answers see it."""
    shard, config = _setup(snapshot, node_pool)
    with _telling_bad_objects():
        return cluster_at(snapshot.objects, SystemClock(), shard, config)


@contextmanager
def _telling_bad_objects() -> Iterator[None]:
    """Say what is wrong with an object of a snapshot that no API server would have stored."""
    try:
        yield
    except (msgspec.ValidationError, QuantityError) as error:
        raise UserError(f"an object in the snapshot cannot be read: {error}") from error


def _setup(snapshot: Snapshot, node_pool: str) -> tuple[Shard, Config]:
    try:
        file = convert(
            SchedulerFile, {key: value for key, value in snapshot.config.items() if value and key in _SETTINGS}
        )
        config = from_file(file)
    except (ConfigError, msgspec.ValidationError) as error:
        raise UserError(f"the configuration in the snapshot: {error}") from error
    parameters = snapshot.parameters
    pool = parameters.get("partitionParams") or {}
    shard = Shard(
        parameters.get("schedulerName") or file.scheduler_name,
        pool.get("NodePoolLabelKey") or file.node_pool_label_key,
        node_pool or pool.get("NodePoolLabelValue", ""),
    )
    return shard, config


def load_snapshot(path: Path) -> Snapshot:
    """A snapshot from a file; one that cannot be read is a usage error."""
    try:
        return read(path.read_bytes())
    except SnapshotError as error:
        raise wrong_value("--snapshot", f"{path}: {error}") from error


def fetch_snapshot(server: Server) -> Snapshot:
    """Everything the scheduler looks at, read from a cluster."""

    async def fetch() -> Snapshot:
        client = connect(server)
        try:
            captured = await capture(client)
        finally:
            await client.close()
        if captured.refused:
            more = len(captured.refused) - 1
            others = f" (and {more} more kinds)" if more else ""
            raise UserError(f"a snapshot needs to read everything: {captured.refused[0]}{others}")
        return Snapshot(captured.objects)

    return asyncio.run(fetch())
