"""`spinney up`: a cluster in the foreground, with everything in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spinney.api import quantity
from spinney.api.core import Node
from spinney.api.labels import NODE_GROUP
from spinney.app.event_loop import run_until_stopped
from spinney.app.laptop import Options, laptop
from spinney.cli.dashboard_options import dashboard_options
from spinney.cli.node_options import node_group_option, node_options
from spinney.embedded.controllers.autoscaling.node_groups import NodeGroup
from spinney.embedded.nodes.profile import Profile
from spinney.kube.logs import configure
from spinney.web.settings import DashboardSettings

if TYPE_CHECKING:
    from spinney.answers.whatif.applying import Expand


def _bytes(_context: click.Context, _option: click.Parameter, text: str) -> int:
    try:
        return quantity.units(text)
    except ValueError:
        raise click.BadParameter(f"{text!r}: write a quantity such as 2Gi") from None


# Resources that a profile sets, and a restart with another profile would have changed.
_COMPARED = ("cpu", "memory", "nvidia.com/gpu")


@click.command(
    epilog="""\b
Examples:
  spinney up
  spinney up --nodes 4 --gpus 8 --racks 2 --port 0 --kubeconfig /tmp/laptop
  spinney up --label type=kwok --taint reserved=yes:NoSchedule
  spinney up --bare --nodes 1000     only the API, its controllers and nodes
  spinney up --no-dashboard
  spinney up --nodes 2 --node-group name=burst,max=4,gpus=8     nodes that come and go as pods need them
"""
)
@node_options
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6443,
    show_default=True,
    help="Where to listen on 127.0.0.1; 0 picks a free port.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(".spinney/kubeconfig"),
    show_default=True,
    help="Where to write how kubectl gets in.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the cluster's state in this folder, over restarts; without it, in memory.",
)
@click.option(
    "--space-quota",
    "space",
    callback=_bytes,
    metavar="QUANTITY",
    default="2Gi",
    show_default=True,
    help="What all objects together may take, as etcd's quota; a pod counts about 19 kB.",
)
@click.option("--bare", is_flag=True, help="Only the API, its controllers and nodes.")
@click.option(
    "--operators/--no-operators",
    default=True,
    show_default=True,
    help="Stand-ins for the operators of PyTorchJob, RayJob, MPIJob, JobSet, LeaderWorkerSet …, with their kinds.",
)
@node_group_option
@click.option("--mnnvl", is_flag=True, help="Give GPU cliques NVLink domains (MNNVL).")
@click.option(
    "--decision-log",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep what every scheduling cycle saw and decided in this folder, for `spinney decisions`.",
)
@click.option("--authorizer", is_flag=True, help="Refuse changes to what the Grove operator manages.")
@dashboard_options
def up(
    *,
    nodes: Profile,
    port: int,
    kubeconfig: Path,
    data_dir: Path | None,
    space: int,
    bare: bool,
    operators: bool,
    node_groups: tuple[NodeGroup, ...],
    mnnvl: bool,
    authorizer: bool,
    decision_log: Path | None,
    dashboard: DashboardSettings | None,
) -> None:
    """Run a Kubernetes API with simulated nodes and all components, until Ctrl-C."""
    configure(level="warning")
    where = kubeconfig.resolve()
    options = Options(
        nodes=nodes,
        port=port,
        kubeconfig=where,
        data_dir=data_dir,
        space=space,
        bare=bare,
        operators=operators,
        node_groups=node_groups,
        mnnvl=mnnvl,
        authorizer=authorizer,
        decision_log=decision_log,
        dashboard=dashboard,
        expand=None if bare else _expand(),
    )

    async def main() -> None:
        async with laptop(options) as running:
            click.echo(f"ready at {running.url}: export KUBECONFIG={where}")
            if data_dir is not None:
                nodes_there = (await running.client.list(Node)).items
                kept = [node for node in nodes_there if NODE_GROUP not in node.metadata.labels]
                if note := nodes_kept(kept, nodes):
                    click.echo(note, err=True)
            if running.dashboard:
                click.echo(f"dashboard at {running.dashboard}")
            await running.failed()

    run_until_stopped(main())


def _expand() -> Expand:
    """How what-if questions work out what controllers make of workloads."""
    from spinney.sim.expansion import expand  # noqa: PLC0415  # slow to import, and not for a bare cluster

    return expand


def nodes_kept(kept: Sequence[Node], wanted: Profile) -> str:
    """How the nodes of a data folder differ from those asked for; empty if they do not."""
    names = {wanted.name(index) for index in range(wanted.count)}
    others = sorted(node.name for node in kept if node.name not in names)
    notes = []
    if others:
        count, some = len(others), ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        notes.append(
            f"{count} nodes of an earlier start stay beside the {wanted.count} asked for: {some} "
            "(spinney nodes remove NAME)"
        )
    capacity = wanted.capacity
    changed = [node for node in kept if node.name in names and not _has(node, capacity)]
    if changed:
        notes.append(f"{len(changed)} nodes of an earlier start have other resources than asked for, and keep them")
    return "; ".join(notes)


def _has(node: Node, capacity: Mapping[str, str]) -> bool:
    return all(node.status.capacity.get(name) == amount for name, amount in capacity.items() if name in _COMPARED)
