"""`spinney decisions`: show, replay and compare what the scheduler decided, cycle by cycle."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.api.times import rfc3339_milli
from spinney.app.private_files import open_private
from spinney.cli.ask.cluster_options import plain
from spinney.cli.output import print_json

if TYPE_CHECKING:
    from spinney.scheduler.intake.decision_records import CycleRecord

_log = click.argument("log", type=click.Path(exists=True, path_type=Path))


@click.group(
    epilog="""\b
Examples:
  spinney up --decision-log decisions
  spinney decisions show decisions
  spinney decisions replay decisions --write ours.jsonl
  spinney decisions diff decisions ours.jsonl
  spinney decisions diff decisions --config new.yaml
  git bisect run spinney decisions replay decisions
"""
)
def decisions() -> None:
    """Show, replay and compare what the scheduler decided, cycle by cycle.

    A log is a folder of `--decision-log` (`decisionLog` in the scheduler's configuration), or one of its files. To find
    out what a version changes, replay a log with it, write what it decides, and compare.
    """


@decisions.command()
@_log
@click.option("--cycle", type=int, help="Only this cycle, with all of its decisions.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def show(*, log: Path, cycle: int | None, output: str) -> None:
    """The cycles of LOG: when, how much changed before, and what was decided.

    \b
    Example:
      spinney decisions show decisions --cycle 12
    """
    records = [record for record in _records(log) if cycle is None or record.cycle == cycle]
    if cycle is not None and not records:
        raise click.UsageError(f"{log} has no cycle {cycle}")
    if output == "json":
        print_json(plain(records))
        return
    for record in records:
        changed = sum(map(len, record.changed.values())) + sum(map(len, record.gone.values()))
        taken = record.decided["decisions"]
        kinds = ", ".join(f"{sum(each[0] == kind for each in taken)} {kind}" for kind in ("bind", "wait", "evict"))
        whole = " (whole state)" if record.whole else ""
        at = rfc3339_milli(datetime.fromtimestamp(record.now, UTC))
        click.echo(f"cycle {record.cycle} at {at}: {changed} changes{whole}; {kinds}")
        if cycle is not None:
            for each in taken:
                click.echo(f"  {_decision(each)}")


@decisions.command()
@_log
@click.option(
    "--write", type=click.Path(dir_okay=False, path_type=Path), help="Write the log with what this version decides."
)
def replay(*, log: Path, write: Path | None) -> None:
    """Plan every cycle of LOG again, and compare byte for byte; the exit code is 1 where a cycle differs.

    \b
    Example:
      spinney decisions replay decisions --write ours.jsonl
    """
    import msgspec  # noqa: PLC0415  # slow to import

    from spinney.scheduler.intake.decision_records import canonical, replayed  # noqa: PLC0415  # as above

    cycles = different = 0
    lines: list[bytes] = []
    for record, ours in replayed(_records(log)):
        cycles += 1
        if canonical(record.decided) != canonical(ours):
            different += 1
            if different == 1:
                click.echo(f"cycle {record.cycle} differs:")
                _print_difference(record.decided, ours)
        if write is not None:
            lines.append(msgspec.json.encode(msgspec.structs.replace(record, decided=ours)) + b"\n")
    if write is not None:
        with open_private(write) as out:
            out.writelines(lines)
    click.echo(f"{cycles} cycles replayed, {different} differ")
    if different:
        raise click.exceptions.Exit(1)


@decisions.command()
@_log
@click.argument("other", type=click.Path(exists=True, path_type=Path), required=False)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Instead of OTHER: plan LOG again with this configuration of the scheduler.",
)
def diff(*, log: Path, other: Path | None, config: Path | None) -> None:
    """The first decision in which two logs of the same input differ; the exit code is 1 if there is one.

    Every cycle of a log holds its whole input. So the first difference is the one that a version, or a configuration,
    makes, and not a consequence of an earlier one.

    \b
    Examples:
      spinney decisions diff decisions ours.jsonl
      spinney decisions diff decisions --config new.yaml
    """
    from spinney.scheduler.intake.decision_records import canonical  # noqa: PLC0415  # slow to import

    if (other is None) == (config is None):
        raise click.UsageError("name either another log, or --config with a configuration")
    compared = 0
    for record, theirs, name in _replayed_with(log, config) if config is not None else _paired_with(log, other or log):
        compared += 1
        if canonical(record.decided) != canonical(theirs):
            click.echo(f"cycle {record.cycle} differs ({record.version} and {name}), after {compared - 1} equal ones")
            _print_first(record.decided, theirs)
            _print_difference(record.decided, theirs)
            raise click.exceptions.Exit(1)
    if not compared:
        raise click.UsageError("the logs have no cycle in common")
    click.echo(f"{compared} cycles are the same")


def _paired_with(log: Path, other: Path) -> Iterator[tuple[CycleRecord, Any, str]]:
    """Cycles that both logs have: the record, what the other one decided, and its version."""
    theirs = {record.cycle: record for record in _records(other)}
    for record in _records(log):
        if (match := theirs.get(record.cycle)) is not None:
            yield record, match.decided, match.version


def _replayed_with(log: Path, config: Path) -> Iterator[tuple[CycleRecord, Any, str]]:
    """Every cycle, what this version decides with another configuration, and the name of that."""
    from spinney.cli.ask.replay import configurations  # noqa: PLC0415  # slow to import
    from spinney.scheduler.intake.decision_records import replayed  # noqa: PLC0415  # as above

    (other,) = configurations([config]).values()
    for record, ours in replayed(_records(log), other):
        yield record, ours, str(config)


def _print_first(left: Any, right: Any) -> None:
    """The first decision that differs, as each side took it."""
    pairs = zip_longest(left["decisions"], right["decisions"])
    for number, (before, after) in enumerate(pairs, 1):
        if before != after:
            sides = [_decision(each) if each is not None else "nothing more" for each in (before, after)]
            click.echo(f"decision {number}: {sides[0]}, against {sides[1]}")
            return


def _records(log: Path) -> Iterator[CycleRecord]:
    """The records of a folder or a file; a wrong line is a usage error."""
    from spinney.scheduler.intake.decision_records import RecordError, read_records  # noqa: PLC0415  # slow to import

    files = sorted(log.glob("decisions-*.jsonl")) if log.is_dir() else [log]
    if not files:
        raise click.UsageError(f"{log} holds no decisions-*.jsonl")
    for path in files:
        try:
            with path.open("rb") as lines:
                yield from read_records(lines)
        except RecordError as error:
            raise click.UsageError(f"{path}: {error}") from error


def _print_difference(left: Any, right: Any) -> None:
    before, after = ([_decision(each) for each in side["decisions"]] for side in (left, right))
    for line in before:
        if line not in after:
            click.echo(f"  - {line}")
    for line in after:
        if line not in before:
            click.echo(f"  + {line}")
    for name in left:
        if name != "decisions" and left[name] != right.get(name):
            click.echo(f"  {name} differs")
    if before != after and sorted(before) == sorted(after):
        click.echo("  the same decisions in another order")


def _decision(each: Any) -> str:
    kind, action, task, job, node = each[:5]
    return f"{action}: {kind} {task} of {job} on {node}"
