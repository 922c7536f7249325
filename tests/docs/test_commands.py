"""What README, quick start and tutorials tell a reader to type works, and prints what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.commands import ROOT, read
from tests.docs.comparing import agrees
from tests.docs.shell import run_all, shell

PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "users" / "quickstart.md",
    *sorted((ROOT / "docs" / "users" / "tutorials").glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_prints_what_its_page_shows(page: Path, tmp_path: Path) -> None:
    """A reader who follows the page on a laptop sees what is written there."""
    with shell(tmp_path) as opened:
        run_all(opened, read(page).commands)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_that_are_run_elsewhere_say_where(page: Path) -> None:
    """A block that is not run here names the file of the checkout that runs it."""
    for place in read(page).elsewhere:
        assert (ROOT / place).is_file(), place


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a   b 3s", "a b 17m", True),
        ("pod-x7k2q Running", "pod-bbbbb Running", True),
        ("pod-x7k2q Running", "pod-bbbbb Pending", False),
        ("one … three", "one\ntwo\nthree", True),
        ("one … three", "one two four", False),
        ("one", "one two", False),
    ],
)
def test_comparing(shown: str, printed: str, same: bool) -> None:
    """Ages and generated names may differ, and `…` stands for any text; every other word counts."""
    assert agrees(shown, printed) is same
