"""`spinney up`: a cluster in the foreground, with everything in it."""

from __future__ import annotations

from pathlib import Path

import click

from spinney.api import quantity
from spinney.app.event_loop import run_until_stopped
from spinney.app.laptop import Options, laptop
from spinney.cli.dashboard_options import dashboard_options
from spinney.cli.node_options import node_options
from spinney.embedded.nodes.profile import Profile
from spinney.kube.logs import configure
from spinney.web.settings import DashboardSettings


def _bytes(_context: click.Context, _option: click.Parameter, text: str) -> int:
    try:
        return quantity.units(text)
    except ValueError:
        raise click.BadParameter(f"{text!r}: write a quantity such as 2Gi") from None


@click.command(
    epilog="""\b
Examples:
  spinney up
  spinney up --nodes 4 --gpus 8 --racks 2 --port 0 --kubeconfig /tmp/laptop
  spinney up --label type=kwok --taint reserved=yes:NoSchedule
  spinney up --bare --nodes 1000     only the API, its controllers and nodes
  spinney up --no-dashboard
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
@click.option("--mnnvl", is_flag=True, help="Give GPU cliques NVLink domains (MNNVL).")
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
    mnnvl: bool,
    authorizer: bool,
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
        mnnvl=mnnvl,
        authorizer=authorizer,
        dashboard=dashboard,
    )

    async def main() -> None:
        async with laptop(options) as running:
            click.echo(f"ready at {running.url}: export KUBECONFIG={where}")
            if running.dashboard:
                click.echo(f"dashboard at {running.dashboard}")
            await running.failed()

    run_until_stopped(main())
