"""The options of commands that answer about a cluster, live or from a snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from spinney.cli.options import CONNECTION, Connection, bundled
from spinney.cli.warnings import PrintingWarnings

if TYPE_CHECKING:
    from spinney.answers.cluster import Cluster
    from spinney.kube.client.client import Client

T = TypeVar("T")

# Kinds without which the scheduler's plan is not known.
_PLANNED_ON = ("Node", "Pod", "PodGroup", "Queue")


@dataclass(frozen=True)
class Source:
    """Where the answers come from: a cluster, or a file."""

    connection: Connection
    snapshot: Path | None = None
    node_pool: str = ""

    def namespace(self, chosen: str) -> str:
        """The namespace to look at: the chosen one, else that of the context."""
        if chosen or self.snapshot is not None:
            return chosen or "default"
        return self.connection.server().namespace

    def read(self, namespace: str = "") -> Cluster:
        """Read everything once; where only one namespace may be read, that one."""
        # The scheduler is slow to import: help does without it.
        from spinney.answers.reading import read_cluster  # noqa: PLC0415  # as said
        from spinney.app.snapshots import cluster_in, load_snapshot  # noqa: PLC0415  # as said
        from spinney.kube.clock import SystemClock  # noqa: PLC0415  # as said
        from spinney.kube.gc_tuning import collect_rarely  # noqa: PLC0415  # as said
        from spinney.scheduler.service.shard import Shard  # noqa: PLC0415  # as said

        collect_rarely()
        if self.snapshot is not None:
            return cluster_in(load_snapshot(self.snapshot), self.node_pool)
        shard = Shard(pool=self.node_pool)
        return self.connected(lambda client: read_cluster(client, SystemClock(), namespace, shard))

    def connected(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Do something with a client of the cluster."""
        from spinney.kube.client.https import connect  # noqa: PLC0415  # slow to import

        async def main() -> T:
            client = connect(self.connection.server())
            client.transport = PrintingWarnings(client.transport)
            try:
                return await work(client)
            finally:
                await client.close()

        return asyncio.run(main())


def _source(*, kubeconfig: str, context: str, snapshot: Path | None, node_pool: str) -> Source:
    return Source(Connection(kubeconfig, context), snapshot, node_pool)


# The command gets where to read from.
cluster_options = bundled(
    "source",
    _source,
    *CONNECTION,
    click.option(
        "--snapshot",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A file of `spinney snapshot save` (or of KAI's /get-snapshot) instead of a cluster.",
    ),
    click.option("--node-pool", default="", help="The shard to look at; the default shard has no name."),
)

namespace_option = click.option("--namespace", "-n", default="", help="Default: that of the context.")
all_namespaces_option = click.option("--all-namespaces", "-A", is_flag=True, help="All namespaces.")


def require(cluster: Cluster, *kinds: str, everywhere: bool = False) -> None:
    """End with an error if a kind may not be read: an empty answer would be a wrong one."""
    for kind in kinds:
        if text := cluster.unread(kind):
            raise click.ClickException(f"you may not read {kind} objects: {text}")
    if everywhere and cluster.namespace:
        raise click.ClickException(
            f"you may read namespace {cluster.namespace} only: leave --all-namespaces out, or ask for more rights"
        )


def require_plan(cluster: Cluster) -> None:
    """End with an error if too little may be read to know what the scheduler would do."""
    if cluster.schedule is not None:
        return
    refused = [unread.text for unread in cluster.partial if unread.kind in _PLANNED_ON]
    only = f"you may read those of namespace {cluster.namespace} only"
    raise click.ClickException(
        f"this needs to read nodes, queues, pods and PodGroups of the whole cluster: {refused[0] if refused else only}"
    )


def note_partial(cluster: Cluster) -> None:
    """Say on stderr what is left out because the user may not read it."""
    if cluster.schedule is None:
        unread = dict.fromkeys(unread.kind for unread in cluster.partial)
        named = [kind for kind in unread if kind in _PLANNED_ON] or list(unread)[:1]
        others = f" and {len(unread) - len(named)} other kinds" if len(unread) > len(named) else ""
        kinds = f"{', '.join(named)}{others}" if named else "other namespaces"
        click.echo(
            f"note: you may not read {kinds}: reasons are those that schedulers wrote down; "
            "line and expected start are left out",
            err=True,
        )


def plain(answer: Any) -> Any:
    """An answer as plain data, for JSON and YAML."""
    import msgspec  # noqa: PLC0415  # slow to import

    return msgspec.json.decode(msgspec.json.encode(answer))
