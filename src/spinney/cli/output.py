"""How commands print: tables, YAML documents and JSON."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

import click
import yaml

from spinney.api.meta import Json


def print_table(
    rows: Sequence[Sequence[str]], align: Literal["left", "right"] = "left", width: int | None = None
) -> None:
    """Print rows in aligned columns, the header first; `align` is for all columns but the first.

    Lines are cut to `width`, and never cut without one.
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(width) if align == "right" and column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        line = "   ".join(cells).rstrip()
        click.echo(f"{line[: width - 1]}…" if width and len(line) > width else line)


def print_csv(rows: Iterable[Sequence[str]]) -> None:
    """Print rows for spreadsheets, the header first."""
    csv.writer(sys.stdout, lineterminator="\n").writerows(rows)


def age(created: str, now: datetime) -> str:
    """The time since a moment, in its largest unit."""
    if not created:
        return ""
    seconds = max(0, int((now - datetime.fromisoformat(created)).total_seconds()))
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 7200:
        return f"{seconds // 60}m"
    return f"{seconds // 3600}h" if seconds < 172800 else f"{seconds // 86400}d"


def print_yaml(documents: Iterable[Json]) -> None:
    """Print documents that `kubectl apply` takes; shared parts are written out, so that each can be cut out alone."""
    click.echo(yaml.dump_all(documents, Dumper=_Plain, sort_keys=False, explicit_start=True, width=120), nl=False)


def print_json(data: Any) -> None:
    """Print data for other programs."""
    click.echo(json.dumps(data, indent=2))


class _Plain(yaml.SafeDumper):
    """YAML without anchors and aliases."""

    def ignore_aliases(self, data: object) -> bool:
        """Never an alias."""
        return True
