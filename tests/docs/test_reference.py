"""The reference for users says what the code does now."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.reference.__main__ import PAGES

from tests.docs.commands import ROOT

FOLDER = ROOT / "docs" / "users" / "reference"


@pytest.mark.parametrize("name", PAGES)
def test_the_reference_is_what_the_code_says(name: str) -> None:
    """`make reference` would change nothing."""
    assert PAGES[name]() == Path(FOLDER / name).read_text(), "run `make reference`"
