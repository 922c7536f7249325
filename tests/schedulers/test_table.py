"""The table of what schedulers cannot do: it names real stories, and the documentation shows it as it is."""

from __future__ import annotations

import pytest

from spinney.testing.schedulers.entries import ENTRIES
from tests.schedulers import report
from tests.schedulers.stories import STORIES
from tests.schedulers.table import CANNOT


def test_cells_are_of_the_table() -> None:
    """Every exception is a scheduler and a story of the suite."""
    assert {name for name, _ in CANNOT} <= set(ENTRIES)
    assert {story for _, story in CANNOT} <= set(STORIES)


def test_every_scheduler_has_a_page() -> None:
    """No scheduler of the suite is left out of the documentation."""
    assert {name for names in report.PAGES.values() for name in names} == set(ENTRIES)


@pytest.mark.parametrize("name", report.PAGES)
def test_documentation(name: str) -> None:
    """A page shows the table as it is: otherwise run `python -m tests.schedulers.report`."""
    assert (report.DOCS / name).read_text() == report.page(name)
