"""What pages show of files, and which pages the site and the list of pages have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from scripts.pictures import FOLDER, PICTURES

from tests.docs.commands import ROOT

DOCS = sorted((ROOT / "docs").rglob("*.md"))
_EXCERPT = re.compile(r"^<!-- (examples/\S+) -->\n```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_lines_that_a_page_shows_of_a_file_are_in_it() -> None:
    """A block that names its file is a part of that file, word for word."""
    excerpts = [excerpt for page in DOCS for excerpt in _EXCERPT.findall(page.read_text())]
    assert excerpts
    assert [name for name, lines in excerpts if lines not in (ROOT / name).read_text()] == []


def test_the_site_leads_to_every_page_once() -> None:
    """The navigation of `make docs` names each page under docs/, and otherwise files that exist."""
    named = list(_pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert [page for page in named if not (ROOT / page).is_file()] == []
    assert sorted(page for page in named if page.startswith("docs/")) == [str(page.relative_to(ROOT)) for page in DOCS]


def test_the_list_of_pages_has_every_page() -> None:
    """docs/README.md links to each page for users."""
    text = (ROOT / "docs" / "README.md").read_text()
    pages = [str(page.relative_to(ROOT / "docs")) for page in DOCS if "users" in page.parts]
    assert [page for page in pages if f"]({page})" not in text] == []


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_the_script_draws(name: str) -> None:
    """`make reference` would change nothing, and some page shows it."""
    assert Path(FOLDER / name).read_text() == PICTURES[name]().svg()
    assert any(f"pictures/{name})" in page.read_text() for page in DOCS)


def _pages(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    entries = nav.values() if isinstance(nav, dict) else nav
    return [page for entry in entries for page in _pages(entry)]  # type: ignore[union-attr]  # a list
