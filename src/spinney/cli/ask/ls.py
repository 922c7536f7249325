"""`spinney ls`: all workloads, of every kind, in one table."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from spinney.cli.ask.cluster_options import (
    Source,
    all_namespaces_option,
    cluster_options,
    namespace_option,
    note_partial,
    plain,
    require,
)
from spinney.cli.ask.watching import follow
from spinney.cli.output import age, print_json, print_table, print_yaml

if TYPE_CHECKING:
    from spinney.answers.model import Listing, Workload

_SORTS = ("name", "age", "queue", "priority", "gpus", "phase", "line")
# Columns of a narrow terminal are left out until this much of a reason is visible.
_WHY_WIDTH = 40
_PHASES = ("Waiting", "Starting", "Running", "Suspended", "Succeeded", "Failed", "Terminating")


@click.command(
    epilog="""\b
Examples:
  spinney ls                         # of the context's namespace
  spinney ls -A --phase waiting --sort line
  spinney ls --queue team-a -w
  spinney ls -A -o json | jq '.items[] | select(.why).why.text'
"""
)
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
@namespace_option
@all_namespaces_option
@click.option("--queue", default="", help="Only workloads of this queue.")
@click.option("--phase", type=click.Choice(_PHASES, case_sensitive=False), multiple=True, help="Only in these phases.")
@click.option("--sort", type=click.Choice(_SORTS), default="name", show_default=True)
@click.option("--watch", "-w", is_flag=True, help="Follow until Ctrl-C.")
@click.option("--output", "-o", type=click.Choice(["table", "wide", "json", "yaml", "name"]), default="table")
@cluster_options
def ls(
    *,
    kinds: tuple[str, ...],
    namespace: str,
    all_namespaces: bool,
    queue: str,
    phase: tuple[str, ...],
    sort: str,
    watch: bool,
    output: str,
    source: Source,
) -> None:
    """All workloads: what they ask for, how far they are, and why they wait.

    KIND is a kind as kubectl names it (job, pytorchjobs, pcs, pod); without one, every kind is shown.
    """
    from spinney.answers.workloads import workloads  # noqa: PLC0415  # slow to import

    place = "" if all_namespaces else source.namespace(namespace)

    def show() -> None:
        cluster = source.read(place)
        require(cluster, "Pod", everywhere=all_namespaces)
        listed = _chosen(workloads(cluster, place), kinds, queue, phase, sort)
        if output not in ("json", "yaml"):
            note_partial(cluster)
        if not listed.items and output in ("table", "wide"):
            _note_nothing(place, kinds, queue, phase)
        else:
            _print(listed, output, place)

    if watch:
        follow(source, place, show)
    else:
        show()


def _chosen(
    listed: Listing[Workload], kinds: Sequence[str], queue: str, phases: Sequence[str], sort: str
) -> Listing[Workload]:
    from msgspec.structs import replace  # noqa: PLC0415  # slow to import

    from spinney.answers.finding import kind_of  # noqa: PLC0415  # as above

    wanted = {kind_of(kind) for kind in kinds}
    items = [
        each
        for each in listed.items
        if (not wanted or each.ref.kind.lower() in wanted)
        and (not queue or each.queue == queue)
        and (not phases or each.phase in phases)
    ]
    return replace(listed, items=sorted(items, key=lambda each: _order(each, sort)))


def _order(workload: Workload, by: str) -> tuple[object, ...]:
    ref = workload.ref
    name = (ref.namespace, ref.kind.lower(), ref.name)
    match by:
        case "age":
            return (workload.created, *name)
        case "queue":
            return (workload.queue, workload.line or 0, *name)
        case "priority":
            return (-(workload.priority or 0), *name)
        case "gpus":
            return (-(workload.gpus or 0.0), *name)
        case "phase":
            return (_PHASES.index(workload.phase), *name)
        case "line":
            return (workload.line is None, workload.queue, workload.line or 0, *name)
        case _:
            return name


def _print(listed: Listing[Workload], output: str, namespace: str) -> None:
    if output == "json":
        print_json(plain(listed))
    elif output == "yaml":
        print_yaml([plain(listed)])
    elif output == "name":
        for each in listed.items:
            click.echo(str(each.ref))
    else:
        now = datetime.fromisoformat(listed.at)
        rows = _rows(listed.items, now, wide=output == "wide", namespaces=not namespace)
        room = _room(output)
        print_table(rows if room is None else narrowed(rows, room), width=room)


def narrowed(rows: Sequence[tuple[str, ...]], room: int) -> Sequence[tuple[str, ...]]:
    """Rows without the columns that leave too little room for the last one, which says why."""
    for name in ("PRIORITY", "AGE", "LINE", "START"):
        columns = range(len(rows[0]) - 1)
        if sum(max(len(row[column]) for row in rows) + 3 for column in columns) + _WHY_WIDTH <= room:
            break
        left_out = rows[0].index(name)
        rows = [(*row[:left_out], *row[left_out + 1 :]) for row in rows]
    return rows


def _note_nothing(namespace: str, kinds: Sequence[str], queue: str, phases: Sequence[str]) -> None:
    """Say that nothing matches, with the filters, so that a misspelt word is noticed."""
    asked = f" of kind {' or '.join(kinds)}" if kinds else ""
    asked += f" in phase {' or '.join(phases)}" if phases else ""
    asked += f" of queue {queue}" if queue else ""
    click.echo(f"no workloads{asked} in {f'namespace {namespace}' if namespace else 'any namespace'}", err=True)


def _room(output: str) -> int | None:
    """The width of the terminal; lines that go into a pipe are not cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() and output == "table" else None


def _rows(items: Sequence[Workload], now: datetime, *, wide: bool, namespaces: bool) -> list[tuple[str, ...]]:
    header: tuple[str, ...] = ("WORKLOAD", "QUEUE", "PRIORITY", "PODS", "GPUS", "PHASE", "AGE", "LINE", "START")
    header = (("NAMESPACE",) if namespaces else ()) + header + (("SCHEDULER", "GANGS") if wide else ()) + ("WHY",)
    return [header, *(_row(each, now, wide=wide, namespaces=namespaces) for each in items)]


def _row(each: Workload, now: datetime, *, wide: bool, namespaces: bool) -> tuple[str, ...]:
    start = each.expected_start
    cells = (
        str(each.ref),
        each.queue or "-",
        each.priority_class or "?" if each.priority is None else str(each.priority),
        f"{each.placed}/{'?' if each.minimum is None else each.minimum}/{each.total}",
        "?" if each.gpus is None else f"{each.gpus:g}",
        each.phase,
        age(each.created, now),
        str(each.line) if each.line is not None else "-",
        until(start.at, now) if start is not None else "-",
    )
    more = (each.scheduler or "-", ",".join(each.gangs) or "-") if wide else ()
    reason = each.why.text if each.why is not None else ""
    return ((each.ref.namespace,) if namespaces else ()) + cells + more + (reason,)


def until(at: str | None, now: datetime) -> str:
    """How long until a moment."""
    if not at:
        return "?"
    moment = datetime.fromisoformat(at)
    return "now" if moment <= now else f"in {age(now.isoformat(), moment)}"
