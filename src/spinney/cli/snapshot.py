"""`spinney snapshot`: keep a moment of a cluster in a file, and plan on it again."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import click

from spinney.app.private_files import open_private
from spinney.app.snapshots import fetch_snapshot, load_snapshot, picture_of
from spinney.cli.options import Connection, connection_options
from spinney.cli.output import print_json
from spinney.scheduler.intake.snapshot import write


@click.group(
    epilog="""\b
Examples:
  spinney snapshot save now.zip
  spinney snapshot run now.zip
"""
)
def snapshot() -> None:
    """Keep a moment of a cluster in a file, and plan on it again.

    The file has the format of KAI's /get-snapshot: either scheduler can read what the other wrote.
    """


@snapshot.command(
    epilog="""\b
Examples:
  spinney snapshot save now.zip
  spinney snapshot save now.zip --context production
"""
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@connection_options
def save(*, file: Path, connection: Connection) -> None:
    """Write everything the scheduler looks at to FILE, which only you can read.

    Environments, commands, arguments, images and mounts of pods are left out, and annotations that no plan depends on.
    """
    taken = fetch_snapshot(connection.server())
    with open_private(file) as opened:
        opened.write(write(taken))
    counts = {resource.plural: len(items) for resource, items in taken.objects.items() if items}
    click.echo(f"{file}: " + ", ".join(f"{count} {plural}" for plural, count in counts.items()))


@snapshot.command(
    epilog="""\b
Examples:
  spinney snapshot run now.zip
  spinney snapshot run now.zip -o json | jq .decisions
"""
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--node-pool", default="", help="The shard to plan for; the default shard has no name.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def run(file: Path, node_pool: str, output: str) -> None:
    """Plan one cycle on FILE and print what would be done. Nothing is written anywhere."""
    loaded = load_snapshot(file)
    started = time.perf_counter()
    picture = picture_of(loaded, node_pool)
    milliseconds = (time.perf_counter() - started) * 1000
    tasks = picture.state.tasks
    decisions = [
        {
            "action": decision.action,
            "kind": decision.kind,
            "pod": f"{tasks[decision.task].spec.namespace}/{tasks[decision.task].spec.name}",
            "node": decision.node,
            **({"for": decision.beneficiary} if decision.beneficiary else {}),
        }
        for decision in picture.plan.decisions
    ]
    if output == "json":
        print_json({"total_duration_ms": round(milliseconds), "decisions": decisions})
        return
    for row in decisions:
        reason = f" for {row['for']}" if "for" in row else ""
        click.echo(f"{row['action']}: {row['kind']} {row['pod']} on {row['node']}{reason}")
    counted = Counter(row["kind"] for row in decisions)
    summary = ", ".join(f"{count} {kind}" for kind, count in sorted(counted.items())) or "nothing to do"
    click.echo(f"{summary} ({milliseconds:.0f} ms, loading included)")
