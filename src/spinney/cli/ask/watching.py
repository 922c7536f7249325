"""Follow a cluster: print again whenever something changed."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from spinney.cli.ask.cluster_options import Source
    from spinney.kube.caches.cache import Caches
    from spinney.kube.client.client import Client
    from spinney.kube.client.transport import Request, Response, Transport

# Changes that come together are shown once.
_PAUSE_SECONDS = 1.0
_CLEAR = "\x1b[H\x1b[2J"
# Workloads whose pods are refused change nothing else.
_REFUSED_PODS = "reason=FailedCreate"


def follow(source: Source, namespace: str, show: Callable[[], None]) -> None:
    """Show something now and after every change, until Ctrl-C; a terminal is redrawn, a pipe gets it all."""
    if source.snapshot is not None:
        raise click.UsageError("--watch and --snapshot do not go together")
    try:
        source.connected(lambda client: _follow(client, namespace, show))
    except KeyboardInterrupt:
        return


async def _follow(client: Client, namespace: str, show: Callable[[], None]) -> None:
    from spinney.kube.caches.cache import Caches  # noqa: PLC0415  # slow to import

    changed = asyncio.Event()
    client.transport = _ReportingLoss(client.transport, changed.set)
    caches = Caches(client)
    await _watch_readable(client, caches, namespace, changed.set)
    watching = asyncio.create_task(caches.run())
    has_reader = _reader_of_output(changed.set)
    try:
        await caches.synced()
        while has_reader():
            changed.clear()
            if sys.stdout.isatty():
                click.echo(_CLEAR, nl=False)
            # In a thread: it reads the cluster with a loop of its own.
            await asyncio.to_thread(show)
            sys.stdout.flush()
            await changed.wait()
            if has_reader():
                await asyncio.sleep(_PAUSE_SECONDS)
    finally:
        watching.cancel()


class _ReportingLoss:
    """A transport that reports when the server cannot be reached, so that what is shown is read again and fails."""

    def __init__(self, inner: Transport, lost: Callable[[], None]) -> None:
        self._inner = inner
        self._lost = lost

    async def send(self, request: Request) -> Response:
        """The server's response."""
        from spinney.kube.errors import ConnectionLost  # noqa: PLC0415  # slow to import

        try:
            return await self._inner.send(request)
        except ConnectionLost:
            self._lost()
            raise

    async def close(self) -> None:
        """Close connections."""
        await self._inner.close()


async def _watch_readable(client: Client, caches: Caches, namespace: str, changed: Callable[[], None]) -> None:
    """Watch pods, and of what else answers depend on all that the user may read."""
    from spinney.api.batch import Job  # noqa: PLC0415  # slow to import
    from spinney.api.core import Event, Node, Pod  # noqa: PLC0415  # as above
    from spinney.api.grove import PodCliqueSet  # noqa: PLC0415  # as above
    from spinney.api.kai import PodGroup, Queue  # noqa: PLC0415  # as above
    from spinney.kube.errors import Forbidden, NotFound  # noqa: PLC0415  # as above

    async def watch(of: type[Event | Job | Node | Pod | PodCliqueSet | PodGroup | Queue]) -> None:
        place = namespace if of.resource.namespaced else ""
        try:
            await anext(aiter(client.pages(of, place, page=1)))
        except (Forbidden, NotFound) as error:
            if of is Pod:
                raise click.ClickException(f"you may not read Pod objects: {error}") from error
            return
        fields = _REFUSED_PODS if of is Event else ""
        caches.of(of, namespace=place, fields=fields).on_change(lambda _: changed())

    checks: list[Awaitable[None]] = [watch(of) for of in (Pod, PodGroup, PodCliqueSet, Job, Node, Queue, Event)]
    await asyncio.gather(*checks)


def _reader_of_output(gone: Callable[[], None]) -> Callable[[], bool]:
    """Whether the output still has a reader; `gone` is called when the reader of a pipe ends."""
    has_gone = asyncio.Event()
    loop = asyncio.get_running_loop()
    try:
        output = sys.stdout.fileno()
        is_pipe = stat.S_ISFIFO(os.fstat(output).st_mode)
    except (OSError, ValueError):
        is_pipe = False

    def end() -> None:
        loop.remove_reader(output)
        has_gone.set()
        gone()

    if is_pipe:
        # Nothing is ever read here: the loop tells that the other end was closed.
        loop.add_reader(output, end)
    return lambda: not has_gone.is_set()
