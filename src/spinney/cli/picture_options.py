"""The options of commands that explain what the scheduler does: a cluster, or a snapshot of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from spinney.cli.options import CONNECTION, Connection, bundled

if TYPE_CHECKING:
    from spinney.scheduler.service.snapshot_view import Picture


def _picture(*, kubeconfig: str, context: str, snapshot: Path | None, node_pool: str) -> Picture:
    # The scheduler is slow to import: help does without it.
    from spinney.app.snapshots import fetch_snapshot, load_snapshot, picture_of  # noqa: PLC0415  # as said

    if snapshot is not None:
        return picture_of(load_snapshot(snapshot), node_pool)
    return picture_of(fetch_snapshot(Connection(kubeconfig, context).server()), node_pool)


# The command gets the cluster as the scheduler of the shard sees it, with its plan.
picture_options = bundled(
    "picture",
    _picture,
    *CONNECTION,
    click.option(
        "--snapshot",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A file of `spinney snapshot save` (or of KAI's /get-snapshot) instead of a cluster.",
    ),
    click.option("--node-pool", default="", help="The shard to look at; the default shard has no name."),
)
