"""`spinney nodes`: simulated nodes and their kubelets on any cluster."""

from __future__ import annotations

import asyncio

import click

from spinney import initc
from spinney.app.event_loop import run_until_stopped
from spinney.cli.node_options import node_options
from spinney.cli.options import Connection, connection_options
from spinney.embedded.nodes.kubelet import Kubelets
from spinney.embedded.nodes.node import Nodes
from spinney.embedded.nodes.profile import Profile
from spinney.kube.caches.cache import Caches
from spinney.kube.client.https import connect
from spinney.kube.clock import SystemClock
from spinney.kube.logs import configure
from spinney.kube.runtime import Runtime

_LEASE_SECONDS = 10.0


@click.command(
    epilog="""\b
Examples:
  spinney nodes --nodes 100 --gpus 8 --kubeconfig ~/.kube/test
  spinney nodes --nodes 0     only simulate nodes that carry kwok.x-k8s.io/node: fake
"""
)
@node_options
@connection_options
def nodes(*, nodes: Profile, connection: Connection) -> None:
    """Add simulated nodes to a cluster and run the pods that are bound to them, until Ctrl-C."""
    configure(level="warning")
    server = connection.server()

    async def main() -> None:
        client = connect(server)
        runtime = Runtime(client=client.named("spinney-kubelet"), caches=Caches(client), clock=SystemClock())
        # A real control plane gives up on nodes whose Lease is not renewed.
        registry = Nodes(runtime, lease_seconds=_LEASE_SECONDS)
        kubelets = Kubelets(runtime, {"spinney initc": initc.program})
        try:
            # One question before anything starts: who cannot get an answer hears why at once.
            await client.call("GET", "/version")
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(runtime.caches.run(), name="caches")
                await registry.controller.synced()
                await kubelets.controller.synced()
                tasks.create_task(registry.run(), name="nodes")
                tasks.create_task(kubelets.run(), name="kubelets")
                await registry.register(nodes)
                click.echo(f"ready: {nodes.count} nodes registered")
        finally:
            await client.close()

    run_until_stopped(main())
