"""`spinney initc`: the init container that keeps the start-up order of a gang."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from spinney import initc as start_order
from spinney.kube.client.https import connect
from spinney.kube.client.kubeconfig import find_server

_INFO = Path("/var/grove/pod-info")


@click.command(
    epilog="""\b
Example, as the init container of a worker that starts after its router:
  spinney initc --podcliques=inference-0-router:1
"""
)
@click.option("--podcliques", multiple=True, metavar="CLIQUE:COUNT", help="Pods of a clique that must be ready.")
@click.option("--pod-info", type=click.Path(path_type=Path), default=_INFO, show_default=True, hidden=True)
def initc(podcliques: tuple[str, ...], pod_info: Path) -> None:
    """Wait until enough pods of other cliques of this pod's gang are ready. Runs inside pods of a PodCliqueSet."""
    try:
        parents = start_order.parse_parents(podcliques)
        namespace, gang = (_read(pod_info / name) for name in ("namespace", "podgangname"))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    server = find_server("", "")

    async def main() -> None:
        client = connect(server)
        try:
            await start_order.wait_for_parents(client, namespace, gang, parents)
        finally:
            await client.close()

    asyncio.run(main())
    ready = ", ".join(f"{name} ({count})" for name, count in parents.items())
    click.echo(f"ready: {ready}")


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; is this running in a pod of a PodCliqueSet?") from error
