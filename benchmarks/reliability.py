"""Runs the whole fault search, and writes its results into docs/results/reliability.md.

python benchmarks/reliability.py --write        mistakes, every scenario and twelve seeds each: the table, of one commit
python benchmarks/reliability.py                the same, printed only
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "reliability.md"
BEGIN, END = "<!-- table: written by `python benchmarks/reliability.py --write` -->", "<!-- end of table -->"
COLUMNS = ("scenario", "write points", "single faults", "seeds", "faults", "steps", "checks", "violations")


def numbers(result: Mapping[str, Any]) -> tuple[int, ...]:
    """The row of one scenario, without its name."""
    return (
        result["writePoints"],
        result["singleFaults"],
        result["seeds"],
        sum(result["faults"].values()),
        result["steps"],
        sum(result["checks"].values()),
        len(result["violations"]),
    )


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """A row for each scenario, and one for all."""
    rows = [(result["scenario"], *numbers(result)) for result in results]
    rows.append(("all", *(sum(column) for column in zip(*map(numbers, results), strict=True))))
    shown = [(name, *(f"{number:,}" for number in own)) for name, *own in rows]
    return "\n".join(f"| {' | '.join(each)} |" for each in (COLUMNS, ("---", *["---:"] * 7), *shown))


def ran(*arguments: str) -> str:
    """What a Python program of this checkout prints, whether it finds something or not."""
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout


def measured() -> str:
    """Everything that `make faults` does, as lines of the page."""
    started, before = time.monotonic(), os.times()
    mistakes = ran("tests.faults.mutations").splitlines()
    results: Iterable[Any] = json.loads(ran("spinney.cli", "faults", "--seeds", "12", "-o", "json"))
    minutes = (time.monotonic() - started) / 60
    after = os.times()
    cpu = (after.children_user + after.children_system - before.children_user - before.children_system) / 60
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    summary = f"One run at {commit}: {minutes:.1f} minutes, {cpu:.1f} minutes of CPU, {os.cpu_count()} cores. "
    noticed = sum("UNNOTICED" not in line for line in mistakes)
    return f"{summary}Of {len(mistakes)} mistakes {noticed} were noticed.\n\n{table(list(results))}"


def main() -> None:
    """Measure, and write or print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    options = parser.parse_args()
    text = measured()
    if not options.write:
        print(text)
        return
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
