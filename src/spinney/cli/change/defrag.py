"""`spinney defrag`: move pods together, so that whole nodes become free."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from spinney.api.numbers import number
from spinney.cli.ask.cluster_options import Source, cluster_options, plain, require_plan
from spinney.cli.output import print_json, print_table, print_yaml

if TYPE_CHECKING:
    from spinney.answers.model import Defrag


@click.command(
    epilog="""\b
Examples:
  spinney defrag
  spinney defrag --max-moves 10 --snapshot now.zip
  spinney defrag --apply --per-minute 6
"""
)
@click.option("--apply", "carry_out", is_flag=True, help="Evict the pods; without it nothing is touched.")
@click.option("--dry-run", is_flag=True, help="Only say what would move: the default.")
@click.option(
    "--per-minute", type=click.IntRange(min=1), default=10, show_default=True, help="Evictions a minute at most."
)
@click.option("--max-moves", type=click.IntRange(min=1), default=100, show_default=True, help="Pods to move at most.")
@cluster_options
@click.option("--output", "-o", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
def defrag(*, source: Source, carry_out: bool, dry_run: bool, per_minute: int, max_moves: int, output: str) -> None:
    """Which pods to move together, and what that gains: stranded GPUs, and the largest gang that fits.

    Pods without a controller, pods that are not preemptible, and pods that a disruption budget or a minimum run time
    protects stay. `--apply` cordons one node after the other, evicts its pods, and opens it again.
    """
    from spinney.answers.defrag import defrag as answer  # noqa: PLC0415  # slow to import

    if carry_out and (dry_run or source.snapshot is not None):
        raise click.UsageError("--apply changes a cluster: leave --dry-run and --snapshot out")
    cluster = source.read()
    require_plan(cluster)
    report = answer(cluster, max_moves)
    if output == "json":
        print_json(plain(report))
    elif output == "yaml":
        print_yaml([plain(report)])
    else:
        _print(report)
    if carry_out and report.moves:
        from spinney.app.defragmenting import move_pods  # noqa: PLC0415  # slow to import

        source.connected(lambda client: move_pods(client, report.moves, 60.0 / per_minute, click.echo))


def _print(report: Defrag) -> None:
    if report.moves:
        rows = [
            (f"  ~ {each.pod}", str(each.workload or ""), f"{number(each.gpus)} GPUs", f"{each.node} → {each.to}")
            for each in report.moves
        ]
        click.echo("Would move")
        print_table(rows)
        click.echo()
    header = ("LARGEST GANG IN ONE", "GPUS", "AFTER")
    # A rack with room for pods of a few GPUs has none for a gang that takes whole nodes.
    gangs = [(f"{each.level}{'' if each.level == 'node' else ', on whole nodes'}", each) for each in report.levels]
    print_table([header, *((name, number(each.before), number(each.after)) for name, each in gangs)])
    for reason, nodes in sorted(report.kept.items()):
        click.echo(f"{nodes} nodes stay as they are: {reason}" if nodes != 1 else f"1 node stays as it is: {reason}")
    click.echo(f"\n{report.text}")
