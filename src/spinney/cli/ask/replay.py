"""`spinney replay`: what other policies would have done with a trace, a snapshot or a history."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spinney.api.numbers import number
from spinney.cli.ask.cluster_options import plain
from spinney.cli.output import print_json, print_table, print_yaml

if TYPE_CHECKING:
    from spinney.scheduler.config import Config
    from spinney.sim.replay.engine import Sample
    from spinney.sim.replay.results import PolicyResult, ReplayResult, Waits
    from spinney.sim.replay.trace import Trace

# Moments that a replay is cut into, where nothing else is said.
_MOMENTS = 5000


@click.command(
    epilog="""\b
Examples:
  spinney replay openb_pod_list_default.csv
  spinney replay history.jsonl --policy today.yaml --policy tomorrow.yaml --charts charts
  spinney replay now.zip --run-for 7200 -o json
"""
)
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A scheduler configuration; several are compared. Default: the scheduler's own defaults.",
)
@click.option("--every", type=click.FloatRange(min=0.0), help="Seconds whose events are planned together.")
@click.option(
    "--run-for",
    type=click.FloatRange(min=1.0),
    default=3600.0,
    show_default=True,
    help="Unknown run times of a snapshot.",
)
@click.option("--charts", type=click.Path(file_okay=False, path_type=Path), help="A folder to write SVG charts to.")
@click.option("--output", "-o", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
def replay(
    *, trace: Path, policies: Sequence[Path], every: float | None, run_for: float, charts: Path | None, output: str
) -> None:
    """Replay a trace, a snapshot or a recorded history under several policies, and compare them.

    TRACE is a list of openb pods (with its nodes beside it), knavigator's jobs, a generator of Kueue's performance
    tests, a file of `spinney snapshot save`, or one of `spinney record`. The planner is driven by arrivals and
    ends; no time is spent waiting.
    """
    from spinney.sim.replay.reading import read_trace  # noqa: PLC0415  # slow to import
    from spinney.sim.replay.results import ReplayResult  # noqa: PLC0415  # as above
    from spinney.sim.replay.trace import TraceError  # noqa: PLC0415  # as above

    try:
        recorded = read_trace(trace, run_for)
    except TraceError as error:
        raise click.UsageError(str(error)) from error
    pause = max(recorded.span / _MOMENTS, 0.001) if every is None else every
    results, samples = _run_all(recorded, configurations(policies), pause)
    result = ReplayResult(
        trace=recorded.name,
        jobs=len(recorded.jobs),
        nodes=len(recorded.nodes),
        resource="gpu" if recorded.resource else "cpu",
        assumed=[*recorded.assumed, f"events of {number(pause)} s are planned together"],
        policies=results,
    )
    if output == "json":
        print_json(plain(result))
    elif output == "yaml":
        print_yaml([plain(result)])
    else:
        _print(result)
    if charts is not None:
        from spinney.sim.replay.charts import draw  # noqa: PLC0415  # only where asked for

        for file in draw(charts, results, samples):
            click.echo(str(file), err=True)


def configurations(policies: Sequence[Path]) -> dict[str, Config]:
    """The configurations in some files, by the name of the file."""
    import msgspec  # noqa: PLC0415  # slow to import

    from spinney.api.meta import convert  # noqa: PLC0415  # as above
    from spinney.api.schedulerfile import SchedulerFile  # noqa: PLC0415  # as above
    from spinney.app.offline_checks import read_documents  # noqa: PLC0415  # as above
    from spinney.scheduler.config import Config, ConfigError  # noqa: PLC0415  # as above
    from spinney.scheduler.intake.config_file import from_file  # noqa: PLC0415  # as above

    if not policies:
        return {"default": Config()}
    by_name: dict[str, Config] = {}
    for path in policies:
        documents = read_documents(str(path))
        try:
            config = from_file(convert(SchedulerFile, documents[0] if documents else {}))
        except (ConfigError, msgspec.ValidationError) as error:
            raise click.UsageError(f"{path}: {error}") from error
        by_name[str(path) if path.stem in by_name else path.stem] = config
    return by_name


def _run_all(
    trace: Trace, policies: dict[str, Config], every: float
) -> tuple[list[PolicyResult], dict[str, Sequence[Sample]]]:
    from spinney.sim.replay.engine import Replay  # noqa: PLC0415  # slow to import
    from spinney.sim.replay.results import result_of  # noqa: PLC0415  # as above

    results: list[PolicyResult] = []
    samples: dict[str, Sequence[Sample]] = {}
    for name, config in policies.items():
        with click.progressbar(
            length=len(trace.jobs), label=name, file=sys.stderr, hidden=not sys.stderr.isatty()
        ) as bar:
            done = Replay(trace, config, every).run(lambda ended, bar=bar: bar.update(ended - bar.pos))  # type: ignore[misc]  # the bar of this round
        results.append(result_of(name, trace, done))
        samples[name] = done.samples
    return results, samples


def _print(replayed: ReplayResult) -> None:
    click.echo(f"{replayed.trace}: {replayed.jobs} jobs on {replayed.nodes} nodes; " + "; ".join(replayed.assumed))
    names = [result.policy for result in replayed.policies]
    click.echo()
    print_table([("", *(name.upper() for name in names)), *_rows(replayed.policies)], align="right")
    _print_waits("QUEUE", {each.policy: each.by_queue for each in replayed.policies})
    _print_waits("SIZE", {each.policy: each.by_size for each in replayed.policies})


def _print_waits(title: str, waits: Mapping[str, Mapping[str, Waits]]) -> None:
    first = next(iter(waits.values()))
    header = (f"MEAN WAIT BY {title}, S", "JOBS", *(name.upper() for name in waits))
    rows = [(group, str(first[group].jobs), *(_wait(each[group]) for each in waits.values())) for group in first]
    click.echo()
    print_table([header, *rows], align="right")


def _rows(results: Sequence[PolicyResult]) -> list[tuple[str, ...]]:
    return [
        ("mean wait, s", *(_wait(each.waits) for each in results)),
        ("90 % waited at most, s", *(number(each.waits.p90) for each in results)),
        ("longest wait, s", *(number(each.waits.longest) for each in results)),
        ("never started", *(str(each.waits.never_started) for each in results)),
        ("makespan, s", *(number(each.makespan) for each in results)),
        ("utilisation", *(f"{each.utilisation:.2%}" for each in results)),
        ("stranded", *(f"{each.stranded:.2%}" for each in results)),
        ("evictions", *(str(each.evictions) for each in results)),
        ("GPU-hours lost", *(number(each.gpu_hours_lost) for each in results)),
        ("fairness of queues", *(f"{each.fairness:.3f}" for each in results)),
    ]


def _wait(waits: Waits) -> str:
    return number(waits.mean) if waits.jobs > waits.never_started else "–"
