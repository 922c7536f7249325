"""The columns of `kubectl get`, and the cells of custom resources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver import data_files
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.ages import age
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.record import Table
from spinney.embedded.apiserver.schema.json_path import find
from spinney.embedded.apiserver.schema.shapes import meta_shape

_MARKS = {"#": "integer", "?": "boolean", "@": "date"}
Cells = Callable[[Json, datetime], list[Any]]


@dataclass(frozen=True)
class Columns:
    """Column definitions, and a function for the cells of an object."""

    headers: tuple[Json, ...]
    cells: Cells


@lru_cache(maxsize=1)
def _descriptions() -> dict[str, dict[str, str]]:
    """The descriptions of columns, by table."""
    return data_files.read("columns", dict[str, dict[str, str]])


def header(name: str, kind: str = "string", priority: int = 0, form: str = "", description: str = "") -> Json:
    """One column's definition."""
    meta_field = {"Name": "name", "Age": "creationTimestamp", "Created At": "creationTimestamp"}.get(name)
    if meta_field and not description:
        description = meta_shape().child(meta_field).schema.get("description", "")
    return {"name": name, "type": kind, "format": form, "description": description, "priority": priority}


def for_kind(kind: Kind) -> Columns:
    """The columns of a kind."""
    if kind.custom is not None:
        return _custom(kind.custom.versions[kind.version].columns)
    return _built_in(kind.table, kind.resource.table)


@lru_cache(maxsize=256)
def _built_in(name: str, table: Table) -> Columns:
    descriptions = _descriptions().get(name, {})
    return Columns(tuple(_parse(column, descriptions) for column in table.columns.split(",")), table.cells)


def _parse(text: str, descriptions: dict[str, str]) -> Json:
    """A column from its name and its mark (see `Table`)."""
    priority = 1 if text.startswith("+") else 0
    text = text.removeprefix("+")
    kind = _MARKS.get(text[0], "string")
    name = text[1:] if text[0] in _MARKS else text
    return header(name, kind, priority, "name" if name in ("Name", "Attacher") else "", descriptions.get(name, ""))


def _custom(columns: tuple[Json, ...]) -> Columns:
    if not columns:
        return Columns((header("Name", form="name"), header("Age", "date")), cells.plain)
    headers = [header("Name", form="name")]
    for column in columns:
        headers.append(
            header(
                column["name"],
                column.get("type", "string"),
                column.get("priority", 0),
                column.get("format", ""),
                column.get("description")
                or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
            )
        )

    def shown(document: Json, now: datetime) -> list[Any]:
        return [document["metadata"]["name"], *(_cell(column, document, now) for column in columns)]

    return Columns(tuple(headers), shown)


def _cell(column: Json, document: Json, now: datetime) -> Any:
    values = find(document, column["jsonPath"])
    if not values:
        return None
    value, kind = values[0], column.get("type", "string")
    # A value of another type than its column is not shown.
    if kind == "date":
        return age(value, now) if isinstance(value, str) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind in ("integer", "number"):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return (int(value) if kind == "integer" else value) if is_number else None
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return cells.compact(value)
    return "" if value is None else str(value)
