"""`spinney record`: keep a live cluster's history in a file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from spinney.app.private_files import open_private
from spinney.cli.options import Connection, connection_options


class Duration(click.ParamType[float]):
    """A Go duration, such as `8h`."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Its seconds, or a usage error."""
        from spinney.api import duration  # noqa: PLC0415  # slow to import

        try:
            return duration.seconds(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command(
    epilog="""\b
Examples:
  spinney record history.jsonl --for 8h
  spinney replay history.jsonl --policy new.yaml
"""
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--for", "seconds", type=Duration(), help="How long, such as 30m or 8h. Default: until Ctrl-C.")
@connection_options
def record(*, file: Path, seconds: float | None, connection: Connection) -> None:
    """Write every change of nodes, queues, gangs and pods to FILE, for `spinney replay`.

    Commands, arguments and environments of containers are left out. Only you may read the file.
    """
    from spinney.app.errors import UserError  # noqa: PLC0415  # slow to import
    from spinney.app.event_loop import run_until_stopped  # noqa: PLC0415  # slow to import
    from spinney.kube.client.https import connect  # noqa: PLC0415  # as above
    from spinney.kube.clock import SystemClock  # noqa: PLC0415  # as above
    from spinney.kube.errors import Forbidden  # noqa: PLC0415  # as above
    from spinney.sim.replay.recording import record as keep  # noqa: PLC0415  # as above
    from spinney.sim.replay.recording import require_readable  # noqa: PLC0415  # as above

    server = connection.server()

    async def check() -> None:
        client = connect(server)
        try:
            await require_readable(client)
        except Forbidden as error:
            raise UserError(f"a history needs nodes, queues, gangs and pods of the whole cluster: {error}") from error
        finally:
            await client.close()

    asyncio.run(check())
    lines = 0
    with open_private(file) as out:

        def write(line: bytes) -> None:
            nonlocal lines
            lines += 1
            out.write(line)

        async def main() -> None:
            client = connect(server)
            try:
                await keep(client, SystemClock(), write, seconds)
            finally:
                await client.close()

        run_until_stopped(main())
    click.echo(f"{file}: {lines} lines")
