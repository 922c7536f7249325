"""Writes results of the fault search into docs/results/reliability.md: the rows of the scenarios that were searched.

spinney faults --seeds 12 -o json > faults.json
python benchmarks/reliability.py faults.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "results" / "reliability.md"
BEGIN, END = "<!-- table: written by `python benchmarks/reliability.py FILE` -->", "<!-- end of table -->"
COLUMNS = ("scenario", "write points", "single faults", "seeds", "faults", "steps", "checks", "violations")


def row(result: Mapping[str, Any]) -> tuple[str, ...]:
    """One scenario."""
    numbers = (
        result["writePoints"],
        result["singleFaults"],
        result["seeds"],
        sum(result["faults"].values()),
        result["steps"],
        sum(result["checks"].values()),
        len(result["violations"]),
    )
    return result["scenario"], *(f"{number:,}" for number in numbers)


def cells(line: str) -> tuple[str, ...]:
    """The cells of a line of the table."""
    return tuple(cell.strip() for cell in line.strip("| \n").split("|"))


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """The table, with the header."""
    return "\n".join(f"| {' | '.join(each)} |" for each in (COLUMNS, ("---", *["---:"] * 7), *rows))


def write(results: Iterable[Mapping[str, Any]]) -> None:
    """Replace the rows of these scenarios, and keep the others."""
    head, _, rest = PAGE.read_text().partition(BEGIN)
    old, _, tail = rest.partition(END)
    rows = {cells(line)[0]: cells(line) for line in old.strip().splitlines()[2:]}
    rows |= {result["scenario"]: row(result) for result in results}
    PAGE.write_text(f"{head}{BEGIN}\n{table(rows.values())}\n{END}{tail}")


if __name__ == "__main__":
    write(result for file in sys.argv[1:] for result in json.loads(Path(file).read_text()))
