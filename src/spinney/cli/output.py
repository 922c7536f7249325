"""How commands print: tables, YAML documents and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import click
import yaml

from spinney.api.meta import Json


def print_table(rows: Sequence[Sequence[str]], align: Literal["left", "right"] = "left") -> None:
    """Print rows in aligned columns, the header first; `align` is for all columns but the first."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(width) if align == "right" and column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo("   ".join(cells).rstrip())


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
