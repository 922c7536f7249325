"""`spinney queues`: who may use how much, who does, and who waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spinney.cli.output import print_json, print_table
from spinney.cli.picture_options import picture_options

if TYPE_CHECKING:
    from spinney.scheduler.service.snapshot_view import Picture
    from spinney.scheduler.why.queue_reports import QueueReport


@click.command(
    epilog="""\b
Examples:
  spinney queues
  spinney queues -o json
  spinney queues --snapshot now.zip
"""
)
@picture_options
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def queues(*, picture: Picture, output: str) -> None:
    """The tree of queues: quota, fair share, allocated, borrowed and pending GPUs, CPU and memory."""
    reports = reports_of(picture)
    if output == "json":
        print_json([_data(report) for report in reports])
        return
    _print(reports)


def reports_of(picture: Picture) -> list[QueueReport]:
    """Every queue, parents before children."""
    from spinney.scheduler.why.queue_reports import queue_reports  # noqa: PLC0415  # slow to import

    return queue_reports(picture.state, picture.plan)


def _data(report: QueueReport) -> dict[str, Any]:
    names = ("cpuMillicores", "memoryBytes", "gpus")
    fields = ("quota", "limit", "fair_share", "allocated", "borrowed", "pending")
    amounts = {
        field.replace("fair_share", "fairShare"): dict(zip(names, getattr(report, field), strict=True))
        for field in fields
    }
    return {"name": report.name, "parent": report.parent, "priority": report.priority, **amounts}


def _print(reports: list[QueueReport]) -> None:
    header = ("QUEUE", "PRIORITY", "GPUS", "OF QUOTA", "LIMIT", "FAIR SHARE", "BORROWED", "PENDING", "CPU", "MEMORY")
    print_table([header, *map(_row, reports)], align="right")


def _row(report: QueueReport) -> tuple[str, ...]:
    return (
        "  " * report.depth + report.name,
        str(report.priority),
        _number(report.allocated[2]),
        _bound(report.quota[2]),
        _bound(report.limit[2]),
        _number(report.fair_share[2]),
        _number(report.borrowed[2]),
        _number(report.pending[2]),
        f"{_number(report.allocated[0] / 1000)} / {_bound(report.quota[0], 1000)}",
        f"{_number(report.allocated[1] / 1e9)} / {_bound(report.quota[1], 1e9)} GB",
    )


def _bound(amount: float, size: float = 1.0) -> str:
    return "unlimited" if amount < 0 else _number(amount / size)


def _number(amount: float) -> str:
    from spinney.scheduler.why.texts import number  # noqa: PLC0415  # slow to import

    return number(amount)
