"""Follow a cluster: print again whenever something changed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from spinney.cli.ask.cluster_options import Source
    from spinney.kube.client.client import Client

# Changes that come together are shown once.
_PAUSE_SECONDS = 1.0
_CLEAR = "\x1b[H\x1b[2J"


def follow(source: Source, namespace: str, show: Callable[[], None]) -> None:
    """Show something now and after every change of pods, until Ctrl-C; a terminal is redrawn, a pipe gets it all."""
    if source.snapshot is not None:
        raise click.UsageError("--watch and --snapshot do not go together")
    try:
        source.connected(lambda client: _follow(client, namespace, show))
    except KeyboardInterrupt:
        return


async def _follow(client: Client, namespace: str, show: Callable[[], None]) -> None:
    from spinney.api.core import Pod  # noqa: PLC0415  # slow to import
    from spinney.kube.caches.cache import Caches  # noqa: PLC0415  # as above

    caches = Caches(client)
    changed = asyncio.Event()
    cache = caches.of(Pod, namespace=namespace)
    cache.on_change(lambda _: changed.set())
    watching = asyncio.create_task(caches.run())
    try:
        await cache.synced()
        while True:
            changed.clear()
            if sys.stdout.isatty():
                click.echo(_CLEAR, nl=False)
            # In a thread: it reads the cluster with a loop of its own.
            await asyncio.to_thread(show)
            sys.stdout.flush()
            await changed.wait()
            await asyncio.sleep(_PAUSE_SECONDS)
    finally:
        watching.cancel()
