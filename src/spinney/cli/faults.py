"""`spinney faults`: search for faults that a whole installation does not survive, in virtual time."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NoReturn

import click
import structlog

from spinney.cli.options import bundled
from spinney.cli.output import print_json, print_table

if TYPE_CHECKING:
    from spinney.sim.faults.campaign import Totals
    from spinney.sim.faults.search import Result


@dataclass(frozen=True)
class Replay:
    """One run to look at: a seed, or a kind of fault at one write."""

    seed: int | None
    write: int | None
    fault: str


@dataclass(frozen=True)
class Extent:
    """How much of the search is done."""

    every: int
    to_the_end: int
    seeds: int
    first_seed: int
    jobs: int


_REPLAY = (
    click.option("--seed", type=int, help="Replay the run of one seed, with its story."),
    click.option("--write", type=click.IntRange(1), help="Replay one --fault, at the write of this number."),
    click.option("--fault", default="crash-after", show_default=True, help="The kind of fault for --write."),
)
_EXTENT = (
    click.option(
        "--every", type=click.IntRange(0), default=1, show_default=True, help="Faults at every n-th write; 0: none."
    ),
    click.option(
        "--to-the-end",
        type=click.IntRange(1),
        default=12,
        show_default=True,
        help="After every n-th fault go on to the scenario's end; after the others, to the next rest.",
    ),
    click.option("--seeds", type=click.IntRange(0), default=0, show_default=True, help="Runs with random faults."),
    click.option("--first-seed", type=int, default=1, show_default=True, help="The first of these."),
    click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Runs side by side."),
)


@click.command(
    epilog="""\b
Examples:
  spinney faults --list
  spinney faults --scenario gang-kai
  spinney faults --scenario update-kai --seed 3
  spinney faults --scenario scaling-kai --write 17 --fault crash-after
"""
)
@click.option("--list", "listing", is_flag=True, help="Print the scenarios, and do nothing.")
@click.option("--scenario", "scenarios", multiple=True, metavar="NAME", help="Only this one; may be repeated.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@bundled("replay", Replay, *_REPLAY)
@bundled("extent", Extent, *_EXTENT)
def faults(listing: bool, scenarios: tuple[str, ...], output: str, *, replay: Replay, extent: Extent) -> None:
    """Search for faults that an installation does not survive.

    Each scenario runs once without faults. Then a component crashes, an answer is lost, a request is refused, or a user
    interferes, at every write. Rules are checked after every step. The exit code is 1 where one was broken.
    """
    _fix_hash_seed()
    from spinney.sim.faults.campaign import Plan, run_scenarios  # noqa: PLC0415  # slow to import
    from spinney.sim.faults.scenarios import SCENARIOS  # noqa: PLC0415  # as above

    if listing:
        print_table([("SCENARIO", "WHAT HAPPENS"), *((name, each.summary) for name, each in SCENARIOS.items())])
        return
    for name in scenarios:
        if name not in SCENARIOS:
            raise click.BadParameter(f"there is no {name!r}: see `spinney faults --list`", param_hint="--scenario")
    if replay.seed is not None or replay.write is not None:
        if len(scenarios) != 1:
            raise click.UsageError("a replay needs exactly one --scenario")
        _replay(scenarios[0], replay, output)
    _print_campaign(run_scenarios(scenarios or tuple(SCENARIOS), Plan(**asdict(extent)), _print_done), output)


def _fix_hash_seed() -> None:
    """Restart with a fixed hash seed, so that the same fault seed takes the same steps in every process."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        command = [sys.executable, "-m", "spinney.cli", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})
    # Forks are safe: virtual time has no threads.
    warnings.simplefilter("ignore", DeprecationWarning)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))


def _replay(scenario: str, replay: Replay, output: str) -> NoReturn:
    from spinney.sim.faults.campaign import replay_seed, replay_write  # noqa: PLC0415  # slow to import
    from spinney.sim.faults.kinds import Kind  # noqa: PLC0415  # as above

    shortest = None
    if replay.seed is not None:
        result, shortest = replay_seed(scenario, replay.seed)
    elif replay.fault not in set(Kind):
        raise click.BadParameter(f"{replay.fault!r} is none of {', '.join(Kind)}", param_hint="--fault")
    else:
        result = replay_write(scenario, replay.write or 1, Kind(replay.fault))
    _print_run(result, shortest, output)
    sys.exit(1 if result.problem else 0)


def _print_run(result: Result, shortest: Result | None, output: str) -> None:
    from spinney.sim.faults.campaign import plain  # noqa: PLC0415  # slow

    if output == "json":
        print_json({**plain(result), "shortest": plain(shortest) if shortest else None})
        return
    shown = shortest or result
    click.echo("\n".join(shown.story))
    if not result.problem:
        click.echo(f"\nkept every rule: {result.faults} faults ({result.fault}), {result.steps} steps")
        return
    if shortest is not None:
        click.echo(f"\nthe first {shortest.faults} of {result.faults} faults are enough:")
    click.echo(f"\n{shown.problem}")


def _print_campaign(done: Sequence[Totals], output: str) -> None:
    if output == "json":
        print_json([totals.plain() for totals in done])
    else:
        rows: list[tuple[str, ...]] = [
            ("SCENARIO", "WRITE POINTS", "SINGLE FAULTS", "SEEDS", "FAULTS", "STEPS", "CHECKS", "VIOLATIONS")
        ]
        rows += [_row(totals.scenario, [totals]) for totals in done]
        rows.append(_row("all", done))
        if output == "markdown":
            rows.insert(1, ("---", *["---:"] * 7))
            click.echo("\n".join(f"| {' | '.join(row)} |".lower() for row in rows))
        else:
            print_table(rows, align="right")
    sys.exit(1 if any(totals.failures for totals in done) else 0)


def _row(name: str, totals: Sequence[Totals]) -> tuple[str, ...]:
    numbers = (
        (
            each.writes,
            each.single_faults,
            each.seeds,
            each.kinds.total(),
            each.steps,
            each.checks.total(),
            len(each.failures),
        )
        for each in totals
    )
    return name, *(f"{sum(column):,}" for column in zip(*numbers, strict=True))


def _print_done(totals: Totals) -> None:
    """Print what broke a rule in a finished scenario, and how to run it again, on stderr."""
    first: dict[str, str] = {}
    for failure in totals.failures:
        where = f"{failure.fault} at {failure.where}" if failure.where else failure.fault
        text = f"as with {first[failure.problem]}" if failure.problem in first else failure.problem
        first.setdefault(failure.problem, failure.replay)
        click.echo(f"{totals.scenario} {failure.replay} ({where}): {text}", err=True)
    runs = totals.single_faults + totals.seeds
    click.echo(f"{totals.scenario}: {runs} runs, {len(totals.failures)} broke a rule", err=True)
