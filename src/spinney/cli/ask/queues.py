"""`spinney queues`: who may use how much, who does, and who waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from spinney.api.numbers import number
from spinney.cli.ask.cluster_options import Source, cluster_options, plain, require, require_plan
from spinney.cli.output import print_json, print_table

if TYPE_CHECKING:
    from spinney.answers.model import Queue


@click.command(
    epilog="""\b
Examples:
  spinney queues
  spinney queues -o json | jq '.items[] | select(.problem)'
  spinney queues --snapshot now.zip
"""
)
@cluster_options
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def queues(*, source: Source, output: str) -> None:
    """The tree of queues: quota, fair share, allocated, borrowed and pending GPUs, CPU and memory."""
    from spinney.answers.queues import queues as answer  # noqa: PLC0415  # slow to import

    cluster = source.read()
    require(cluster, "Queue")
    require_plan(cluster)
    listed = answer(cluster)
    if output == "json":
        print_json(plain(listed))
        return
    if not listed.items:
        click.echo("no queues: create one with `spinney queue create NAME`", err=True)
        return
    header = ("QUEUE", "PRIORITY", "GPUS", "OF QUOTA", "LIMIT", "FAIR SHARE", "BORROWED", "PENDING", "CPU", "MEMORY")
    print_table([header, *map(_row, listed.items)], align="right")
    for each in listed.items:
        if each.problem:
            click.echo(f"queue {each.name}: {each.problem}", err=True)


def _row(queue: Queue) -> tuple[str, ...]:
    return (
        "  " * queue.depth + queue.name,
        str(queue.priority),
        number(queue.allocated.gpu or 0),
        _bound(queue.quota.gpu),
        _bound(queue.limit.gpu),
        _bound(queue.fair_share.gpu),
        number(queue.borrowed.gpu or 0),
        number(queue.requested.gpu or 0),
        f"{number(queue.allocated.cpu or 0)} / {_bound(queue.quota.cpu)}",
        f"{number((queue.allocated.memory or 0) / 1e9)} / {_bound(queue.quota.memory, 1e9)} GB",
    )


def _bound(amount: float | None, size: float = 1.0) -> str:
    return "unlimited" if amount is None else number(amount / size)
