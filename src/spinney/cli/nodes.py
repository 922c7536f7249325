"""`spinney nodes`: simulated nodes: run them on any cluster, or add, drain and remove them on one that runs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import click

from spinney import initc
from spinney.api.core import Node, Pod
from spinney.api.meta import Json
from spinney.app.errors import UserError
from spinney.app.event_loop import run_until_stopped
from spinney.cli.ask.cluster_options import Source
from spinney.cli.node_options import node_options
from spinney.cli.options import Connection, connection_options
from spinney.embedded.nodes.commands import NodeCommands
from spinney.embedded.nodes.kubelet import Kubelets
from spinney.embedded.nodes.node import Nodes
from spinney.embedded.nodes.profile import Profile, is_simulated
from spinney.kube.caches.cache import Caches
from spinney.kube.client.client import Client
from spinney.kube.client.https import connect
from spinney.kube.clock import SystemClock
from spinney.kube.logs import configure
from spinney.kube.runtime import Runtime

_LEASE_SECONDS = 10.0
_beside = click.option(
    "--beside-real-nodes", is_flag=True, help="Also where other nodes are real: pods may be placed on simulated ones."
)
_dry_run = click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")


@click.group(
    invoke_without_command=True,
    epilog="""\b
Examples:
  spinney nodes --nodes 100 --gpus 8 --kubeconfig ~/.kube/test
  spinney nodes --nodes 0     only simulate nodes that carry kwok.x-k8s.io/node: fake
  spinney nodes add --nodes 4 --gpus 8     # on a running `spinney up`
""",
)
@node_options
@connection_options
@_beside
@click.pass_context
def nodes(context: click.Context, *, nodes: Profile, connection: Connection, beside_real_nodes: bool) -> None:
    """Add simulated nodes to a cluster and run the pods that are bound to them, until Ctrl-C.

    On a running `spinney up`, which runs the pods itself, use add, drain and remove. To look at the nodes of a cluster,
    use `kubectl get nodes`, `spinney capacity` or `spinney top`.
    """
    if context.invoked_subcommand is not None:
        return
    configure(level="warning")
    server = connection.server()

    async def main() -> None:
        client = connect(server)
        runtime = Runtime(client=client.named("spinney-kubelet"), caches=Caches(client), clock=SystemClock())
        # A real control plane gives up on nodes whose Lease is not renewed.
        registry = Nodes(runtime, lease_seconds=_LEASE_SECONDS)
        kubelets = Kubelets(runtime, {"spinney initc": initc.program})
        try:
            # Ask once before anything starts, so that a wrong address or credential is reported at once.
            await _refuse_real_nodes(client, nodes, allowed=beside_real_nodes)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(runtime.caches.run(), name="caches")
                await registry.controller.synced()
                await kubelets.controller.synced()
                tasks.create_task(registry.run(), name="nodes")
                tasks.create_task(kubelets.run(), name="kubelets")
                created = await registry.register(nodes)
                click.echo(f"ready: {registered(created, nodes.count)}")
        finally:
            await client.close()

    run_until_stopped(main())


async def _refuse_real_nodes(client: Client, profile: Profile, *, allowed: bool) -> None:
    """Refuse simulated nodes beside real ones: pods of users that are placed there would never run."""
    real = [node.name for node in (await client.list(Node)).items if not is_simulated(node.metadata.annotations)]
    if real and profile.count and not allowed:
        raise UserError(
            f"this cluster has real nodes, such as {real[0]}: pods could be placed on {profile.count} simulated ones, "
            "and never run. If you want that, add --beside-real-nodes; to look at nodes, use `kubectl get nodes` or "
            "`spinney capacity`",
            exit_code=2,
        )


def registered(created: int, wanted: int) -> str:
    """How many nodes were added, and what became of the others."""
    if created == wanted:
        return f"{created} nodes registered"
    return (
        f"{created} nodes registered; {wanted - created} of the names exist already and are left as they are "
        "(to add more to a running cluster: spinney nodes add)"
    )


@nodes.command(
    epilog="""\b
Examples:
  spinney nodes add --nodes 4 --gpus 8 --label pool=new
"""
)
@node_options
@connection_options
@_beside
@_dry_run
def add(*, nodes: Profile, connection: Connection, beside_real_nodes: bool, dry_run: bool) -> None:
    """Add simulated nodes to a cluster whose kubelets are simulated already, such as `spinney up`."""

    async def work(client: Client) -> None:
        await _refuse_real_nodes(client, nodes, allowed=beside_real_nodes)
        existing = {node.name for node in (await client.list(Node)).items}
        manifests = _free(nodes, existing)
        if dry_run:
            click.echo(f"would add {', '.join(manifest['metadata']['name'] for manifest in manifests)}")
            return
        registry = Nodes(Runtime(client=client, caches=Caches(client), clock=SystemClock()))
        for manifest in manifests:
            await registry.register_one(manifest)
        click.echo(f"added {', '.join(manifest['metadata']['name'] for manifest in manifests)}")

    Source(connection).connected(work)


def _free(profile: Profile, existing: set[str]) -> list[Json]:
    """Manifests of as many nodes as wanted, under names that are free; racks are filled on from the existing nodes."""
    wide = replace(profile, count=profile.count + len(existing))
    free = [index for index in range(wide.count) if wide.name(index) not in existing]
    return [wide.node(index) for index in free[: profile.count]]


@nodes.command(
    epilog="""\b
Examples:
  spinney nodes drain node-03
"""
)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@connection_options
@_dry_run
def drain(*, names: tuple[str, ...], connection: Connection, dry_run: bool) -> None:
    """Cordon nodes and evict their pods, waiting for disruption budgets."""

    async def work(client: Client) -> None:
        for name in names:
            await client.get(Node, name)
            pods = (await client.list(Pod, fields=f"spec.nodeName={name}")).items
            count = f"{len(pods)} pod{'s' if len(pods) != 1 else ''}"
            if dry_run:
                click.echo(f"would cordon {name} and evict {count}")
                continue
            await NodeCommands(client).drain(name)
            click.echo(f"cordoned {name} and evicted {count}")

    Source(connection).connected(work)


@nodes.command(
    epilog="""\b
Examples:
  spinney nodes remove node-03 node-04
"""
)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@connection_options
@_dry_run
def remove(*, names: tuple[str, ...], connection: Connection, dry_run: bool) -> None:
    """Delete simulated nodes; their pods are lost. Real nodes are left alone."""

    async def work(client: Client) -> None:
        for name in names:
            node = await client.get(Node, name)
            if not is_simulated(node.metadata.annotations):
                raise click.ClickException(f"node {name} is not simulated: remove it where it comes from")
        for name in names:
            if not dry_run:
                await NodeCommands(client).remove(name)
            click.echo(f"{'would remove' if dry_run else 'removed'} {name}")

    Source(connection).connected(work)
