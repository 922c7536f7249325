"""`spinney top`: the cluster live: GPUs, racks, queues, who waits and who was evicted."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from spinney.api.numbers import number
from spinney.cli.ask.cluster_options import Source, cluster_options, require_plan
from spinney.cli.ask.watching import follow
from spinney.cli.output import age, print_table

if TYPE_CHECKING:
    from spinney.answers.cluster import Cluster

_BAR = 30
_MOST = 10


@click.command(
    epilog="""\b
Examples:
  spinney top
  spinney top --once | head -20
"""
)
@click.option("--once", is_flag=True, help="Print once instead of following until Ctrl-C.")
@cluster_options
def top(*, once: bool, source: Source) -> None:
    """GPUs, racks, queues, who waits and who was evicted, live until Ctrl-C."""

    def show() -> None:
        cluster = source.read()
        require_plan(cluster)
        _print(cluster)

    if once or source.snapshot is not None:
        show()
    else:
        follow(source, "", show)


def _print(cluster: Cluster) -> None:
    from spinney.answers.overview import overview  # noqa: PLC0415  # slow to import
    from spinney.answers.workloads import workloads  # noqa: PLC0415  # as above

    summary = overview(cluster)
    gpus = summary.gpus
    phases = ", ".join(f"{count} {phase.lower()}" for phase, count in sorted(summary.workloads.items()))
    click.echo(f"GPUs   {_bar(gpus.used, gpus.total)} waiting {number(gpus.waiting)}   workloads: {phases or 'none'}")
    for part in summary.capacity.by_reason:
        click.echo(f"       {part.text}")
    for share in summary.capacity.by_rack:
        click.echo(f"{share.name:>24} {_bar(share.used, share.total)}")
    click.echo()
    rows: list[tuple[str, ...]] = [("QUEUE", "GPUS", "FAIR SHARE", "PENDING", "GANGS RUN", "GANGS WAIT")]
    for queue in summary.queues:
        name = "  " * queue.depth + queue.name
        amounts = (queue.allocated.gpu, queue.fair_share.gpu, queue.requested.gpu)
        rows.append((name, *(number(each or 0) for each in amounts), str(queue.running), str(queue.waiting)))
    print_table(rows)
    now = datetime.fromisoformat(summary.at)
    waiting = [each for each in workloads(cluster).items if each.phase == "Waiting"]
    waiting.sort(key=lambda each: (each.queue, each.line or 0))
    click.echo()
    for each in waiting[:_MOST]:
        why = each.why.text if each.why is not None else ""
        click.echo(f"waits {age(each.created, now):>5}  {each.ref.namespace}/{each.ref} in {each.queue or '-'}: {why}")
    if len(waiting) > _MOST:
        click.echo(f"… and {len(waiting) - _MOST} more: spinney ls -A --phase waiting")
    for eviction in summary.evictions[:_MOST]:
        click.echo(f"evicted {age(eviction.at, now):>5} ago  {eviction.text}")


def _bar(used: float, total: float) -> str:
    filled = round(used / total * _BAR) if total else 0
    return f"{'█' * filled}{'░' * (_BAR - filled)} {number(used)}/{number(total)}"
