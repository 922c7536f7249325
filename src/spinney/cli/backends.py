"""`spinney backends`: the registered backends, what each can express, and whether its scheduler runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import click

from spinney.api.conditions import find, is_true
from spinney.api.coordination import Lease
from spinney.api.grove import ClusterTopologyBinding
from spinney.api.kai import SchedulingShard
from spinney.api.labels import KAI_SCHEDULER
from spinney.api.meta import Json
from spinney.backends.capability_table import columns, markdown, rows
from spinney.backends.interface import Backend, Configured, TopologyAware
from spinney.backends.kube_scheduler.releases import GANG_APIS, LATEST, served_by
from spinney.backends.registry import Registry
from spinney.backends.served import Served, discover
from spinney.backends.settings import look_at
from spinney.cli.options import Connection, connection_options
from spinney.cli.output import print_json, print_table
from spinney.kube.client.client import Client
from spinney.kube.client.credentials import ConfigError
from spinney.kube.client.https import connect
from spinney.kube.clock import SystemClock
from spinney.kube.errors import ApiError, ConnectionLost, NotFound


@click.command()
@connection_options
@click.option("--offline", is_flag=True, help="Look at no cluster.")
@click.option("--kubernetes", type=click.Choice(list(GANG_APIS)), default=LATEST, help="The release to assume offline.")
@click.option("--features", is_flag=True, help="What each backend can express, in every version.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "markdown"]), default="table", show_default=True)
def backends(*, connection: Connection, offline: bool, kubernetes: str, features: bool, output: str) -> None:
    """List the backends: gate, scheduler, API, whether the scheduler shows signs of life, and what is not set up.

    \b
    Examples:
      spinney backends
      spinney backends --features
      spinney backends --offline --kubernetes 1.36
      spinney backends --features -o markdown
    """
    registry = Registry.load()
    if features:
        _show_features(registry, output)
        return
    seen = None if offline else asyncio.run(_look(registry, connection))
    assumed = Seen(served_by(kubernetes, registry), "not looked at")
    listed = [_describe(backend, seen[backend.name] if seen else assumed) for backend in registry]
    if output == "json":
        print_json(listed)
    else:
        heads = ["NAME", "SCHEDULER", "GATE", "WRITES", "RUNS"]
        body = [[row["name"], row["scheduler"], row["gate"], row["writes"], row["runs"]] for row in listed]
        print_table([heads, *body])
        for row in listed:
            for problem in row["problems"]:
                click.echo(f"{row['name']}: {problem}")
    for broken in registry.broken:
        click.echo(f"not loaded: {broken.name} ({broken.origin}): {broken.why}", err=True)
    if seen is None and not offline:
        click.echo(f"no cluster found: assuming Kubernetes {kubernetes} with every API installed", err=True)


def _show_features(registry: Registry, output: str) -> None:
    if output == "markdown":
        click.echo(markdown(registry))
        return
    versions = columns(registry)
    if output == "json":
        tables = [
            {
                "backend": column.title,
                "api": column.capabilities.api,
                "features": sorted(feature.name for feature in column.capabilities.features),
                "surplusHeld": column.capabilities.surplus_held,
                "inTurn": column.capabilities.in_turn,
                "remarks": list(column.capabilities.remarks),
            }
            for column in versions
        ]
        print_json(tables)
        return
    # The table is too wide for a terminal: one block of lines per version.
    header, *body = rows(versions)
    for index, title in enumerate(header[1:], start=1):
        click.echo(title)
        click.echo("\n".join(f"  {row[0]:<48} {row[index]}" for row in body))


@dataclass(frozen=True)
class Seen:
    """What a cluster shows of one backend: what it serves, whether its scheduler lives, and what is not set up."""

    served: Served
    runs: str
    problems: tuple[str, ...] = ()


def _describe(backend: Backend, seen: Seen) -> Json:
    return {
        "name": backend.name,
        "scheduler": backend.scheduler_name(""),
        "gate": backend.gate,
        "writes": backend.capabilities(seen.served).api or "not served",
        "runs": seen.runs,
        "problems": list(seen.problems),
    }


async def _look(registry: Registry, connection: Connection) -> dict[str, Seen] | None:
    """What the cluster shows of each backend, by name; None where there is no cluster to ask."""
    try:
        client = connect(connection.server())
    except ConfigError:
        if connection.is_named:
            raise
        return None
    try:
        served = await discover(client, registry.resources)
        return {backend.name: await look(client, backend, served) for backend in registry}
    except ConnectionLost:
        if connection.is_named:
            raise
        return None
    finally:
        await client.close()


async def look(client: Client, backend: Backend, served: Served) -> Seen:
    """What the cluster shows of one backend; the set-up matters where its API is served."""
    problems: list[str] = []
    if backend.capabilities(served).api:
        if isinstance(backend, Configured):
            problems += backend.setup_problems(await look_at(client, backend, served))
        if isinstance(backend, TopologyAware):
            problems += await _topology_drift(client, backend.topology_scheduler)
    return Seen(served, await runs(client, backend), tuple(problems))


async def _topology_drift(client: Client, scheduler: str) -> list[str]:
    """How a scheduler's topology differs from the cluster's, as the bindings' statuses say."""
    try:
        bindings = (await client.list(ClusterTopologyBinding)).items
    except ApiError:
        return []
    return [
        f"topology {binding.name}: {status.message}"
        for binding in bindings
        for status in binding.status.scheduler_topology_statuses
        if status.scheduler_name == scheduler and not status.in_sync
    ]


async def runs(client: Client, backend: Backend) -> str:
    """Whether a backend's scheduler shows signs of life, and if not, what there is instead."""
    if not backend.lease:
        return "unknown: it has no lease"
    try:
        leases = (await client.list(Lease, fields=f"metadata.name={backend.lease}")).items
        renewed = max((lease.spec.renew_time for lease in leases if lease.spec.renew_time), default=None)
        if renewed is None:
            return await _by_shards(client) if backend.lease == KAI_SCHEDULER else "no lease found"
    except ApiError as error:
        return f"unknown: {error}"
    age = SystemClock().now() - renewed.astimezone(UTC)
    return "yes" if age < timedelta(seconds=30) else f"silent since {_stamp(renewed)}"


async def _by_shards(client: Client) -> str:
    """Whether shards are ready: on a laptop cluster no process holds a Lease."""
    try:
        shards = (await client.list(SchedulingShard)).items
    except NotFound:
        return "no lease found"
    if not shards:
        return "no: there is no SchedulingShard, and no lease"
    waiting = [shard for shard in shards if not is_true(shard.status.conditions, "Ready")]
    if not waiting:
        return f"yes: shard {', '.join(shard.name for shard in shards)}"
    ready = find(waiting[0].status.conditions, "Ready")
    return (
        f"not ready: shard {waiting[0].name}: {ready.message if ready is not None else 'nobody has looked at it yet'}"
    )


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
