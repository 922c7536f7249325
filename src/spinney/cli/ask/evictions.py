"""`spinney evictions`: the ledger of who had to go for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from spinney.api.numbers import number
from spinney.cli.ask.cluster_options import (
    Source,
    all_namespaces_option,
    cluster_options,
    namespace_option,
    plain,
    require,
)
from spinney.cli.output import print_csv, print_json, print_table

if TYPE_CHECKING:
    from spinney.answers.model import Eviction

_HEADER = ("AT", "POD", "WORKLOAD", "QUEUE", "RIGHT", "FOR", "BY QUEUE", "GPUS", "GPU-HOURS LOST")


@click.command(
    epilog="""\b
Examples:
  spinney evictions -A
  spinney evictions -A -o csv > evictions.csv
  spinney evictions -n team-a -o json | jq '[.items[].gpuHoursLost] | add'
"""
)
@namespace_option
@all_namespaces_option
@click.option("--right", default="", help="Only those by one right: reclaim, preempt, consolidate, stale-gang.")
@click.option("--output", "-o", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@cluster_options
def evictions(*, namespace: str, all_namespaces: bool, right: str, output: str, source: Source) -> None:
    """Who was evicted, for whom, by which right, and how many GPU-hours of work were lost.

    The ledger is made of events, which API servers keep for an hour unless told otherwise.
    """
    from msgspec.structs import replace  # noqa: PLC0415  # slow to import

    from spinney.answers.evictions import evictions as answer  # noqa: PLC0415  # as above

    place = "" if all_namespaces else source.namespace(namespace)
    cluster = source.read(place)
    require(cluster, "Event", everywhere=all_namespaces)
    listed = answer(cluster, place)
    listed = replace(listed, items=[each for each in listed.items if not right or each.right == right])
    if output == "json":
        print_json(plain(listed))
    elif output == "csv":
        print_csv([_HEADER, *map(_row, listed.items)])
    elif not listed.items:
        by = f" by {right}" if right else ""
        click.echo(f"no evictions{by} in {f'namespace {place}' if place else 'any namespace'}", err=True)
    else:
        print_table([_HEADER, *map(_row, listed.items)])
        lost = sum(each.gpu_hours_lost or 0 for each in listed.items)
        click.echo(f"{len(listed.items)} evictions, {number(lost)} GPU-hours lost", err=True)


def _row(each: Eviction) -> tuple[str, ...]:
    return (
        each.at,
        each.pod,
        str(each.workload) if each.workload is not None else "-",
        each.queue or "-",
        each.right,
        f"{each.by_workload.namespace}/{each.by_workload}" if each.by_workload is not None else "-",
        each.by_queue or "-",
        number(each.gpus),
        number(each.gpu_hours_lost) if each.gpu_hours_lost is not None else "?",
    )
