"""`spinney capacity`: idle GPUs, and why nobody uses them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from spinney.api.numbers import number
from spinney.cli.ask.cluster_options import Source, cluster_options, plain, require_plan
from spinney.cli.output import print_json, print_table

if TYPE_CHECKING:
    from spinney.answers.model import CapacityShare


@click.command(
    epilog="""\b
Examples:
  spinney capacity
  spinney capacity --by rack
  spinney capacity -o json | jq .byReason
"""
)
@click.option("--by", type=click.Choice(["reason", "rack", "queue"]), default="reason", show_default=True)
@click.option("--output", "-o", type=click.Choice(["table", "json"]), default="table", show_default=True)
@cluster_options
def capacity(*, by: str, output: str, source: Source) -> None:
    """Idle GPUs by the reason why nobody uses them, in the cluster, in each rack or for each queue."""
    from spinney.answers.capacity import capacity as answer  # noqa: PLC0415  # slow to import

    cluster = source.read()
    require_plan(cluster)
    report = answer(cluster)
    if output == "json":
        print_json(plain(report))
        return
    click.echo(f"{number(report.total)} GPUs: {number(report.used)} used, {number(report.idle)} idle")
    if by == "reason":
        rows = [(part.reason, number(part.gpus), str(part.nodes), part.text) for part in report.by_reason]
        if rows:
            print_table([("REASON", "GPUS", "NODES", "WHY"), *rows])
        return
    shares = report.by_rack if by == "rack" else report.by_queue
    print_table([(by.upper(), "TOTAL", "USED", "IDLE", "WHY"), *_rows(shares)])


def _rows(shares: Sequence[CapacityShare]) -> Iterator[tuple[str, ...]]:
    for share in shares:
        why = ", ".join(f"{number(part.gpus)} {part.reason}" for part in share.by_reason)
        yield share.name, number(share.total), number(share.used), number(share.idle), why
