"""Markdown that all pages of the reference share."""

from __future__ import annotations

from collections.abc import Iterable

NOTE = "<!-- Written by `make reference`: change the code that it describes. -->"


def opening(title: str, text: str) -> list[str]:
    """The first lines of a page."""
    return [f"# {title}", "", NOTE, "", text, ""]


def table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """A table with a blank line after it."""
    lines = [_row(columns), "|" + "---|" * len(columns), *map(_row, rows)]
    return [*lines, ""]


def code(text: str) -> str:
    """Text as code, or nothing."""
    return f"`{text}`" if text else ""


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"
