"""`spinney uninstall`: take everything of ours out of a cluster, and leave running pods alone."""

from __future__ import annotations

import asyncio

import click

from spinney.app.install.uninstall import Uninstallation
from spinney.cli.options import Connection, connection_options
from spinney.kube.client.https import connect


@click.command(
    epilog="""Pods that run go on running, and Services stay for them. Pods that were still held back are deleted.

\b
Examples:
  spinney uninstall --yes
  spinney uninstall --keep-crds     sets and queues stay, for the next installation or for Grove and KAI
"""
)
@connection_options
@click.option("--namespace", "-n", default="spinney-system", show_default=True, help="Where the components run.")
@click.option("--keep-crds", is_flag=True, help="Keep CustomResourceDefinitions and all objects of their kinds.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def uninstall(*, connection: Connection, namespace: str, keep_crds: bool, yes: bool) -> None:
    """Take Spinney out of a cluster; pods that run go on running."""
    server = connection.server()
    what = "the installation" if keep_crds else "the installation, all PodCliqueSets, gangs and queues, and their CRDs"
    if not yes:
        click.confirm(f"Delete {what} from {server.url}? Pods that run stay.", abort=True, err=True)

    async def main() -> None:
        client = connect(server)
        try:
            await Uninstallation(client, namespace, click.echo).run(keep_crds=keep_crds)
        finally:
            await client.close()

    asyncio.run(main())
