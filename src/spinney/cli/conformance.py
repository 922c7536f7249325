"""`spinney conformance`: compare the scheduler's decisions with those of KAI's test cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from spinney.cli.output import print_json
from spinney.testing.kai_cases import Result, case_name, run_case


@click.group(
    epilog="""\b
Examples:
  spinney conformance kai-scheduler cases.json
"""
)
def conformance() -> None:
    """Compare decisions with those of the original projects."""


@conformance.command("kai-scheduler")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--case", "wanted", default="", help="Only cases whose FILE/FUNC/NAME ends so, with the story of each.")
@click.option("--json", "as_json", is_flag=True, help="Details of every case as JSON.")
def kai_scheduler(file: Path, wanted: str, as_json: bool) -> None:
    """Run scheduler cases from FILE; the last line says how many passed.

    \b
    Examples:
      spinney conformance kai-scheduler cases.json
      spinney conformance kai-scheduler cases.json --case "two jobs one queue"
    """
    entries = _entries(file)
    results = []
    for entry in entries:
        if wanted and not case_name(entry).endswith(wanted):
            continue
        result = _run(entry)
        results.append(result)
        if not as_json and (wanted or not result.passed):
            _print_result(result, story=bool(wanted))
    if as_json:
        print_json([_details(result) for result in results])
    passed = sum(result.passed for result in results)
    click.echo(f"{passed} passed, {len(results) - passed} failed")
    if passed < len(results):
        raise SystemExit(1)


def _entries(file: Path) -> list[dict[str, Any]]:
    try:
        entries = json.loads(file.read_bytes())
    except ValueError as error:
        raise click.BadParameter(f"{file}: not JSON: {error}", param_hint="FILE") from error
    if not isinstance(entries, list):
        raise click.BadParameter(f"{file}: is no list of cases", param_hint="FILE")
    return entries


def _run(entry: dict[str, Any]) -> Result:
    try:
        return run_case(entry)
    except Exception as error:  # one broken case must not hide the others
        return Result(case_name(entry), [f"{type(error).__name__}: {error}"])


def _print_result(result: Result, story: bool) -> None:
    click.echo(f"{'passed' if result.passed else 'FAILED'}: {result.name}")
    for difference in result.differences:
        click.echo(f"  {difference}")
    if not story:
        return
    for number, done in enumerate(result.rounds, start=1):
        click.echo(f"  round {number}")
        for decision in done.decisions:
            what = f"    {decision.action}: {decision.kind} {decision.task} on {decision.node}"
            click.echo(what + (f" for {decision.beneficiary}" if decision.beneficiary else ""))


def _details(result: Result) -> dict[str, Any]:
    return {
        "name": result.name,
        "passed": result.passed,
        "differences": result.differences,
        "rounds": [
            [
                {
                    "action": decision.action,
                    "kind": decision.kind,
                    "task": decision.task,
                    "node": decision.node,
                    "for": decision.beneficiary,
                }
                for decision in done.decisions
            ]
            for done in result.rounds
        ],
    }
