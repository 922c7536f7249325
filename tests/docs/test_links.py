"""Links in the documentation lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]+)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_page_and_a_heading(page: Path) -> None:
    """A relative link names a file that exists; its anchor is a heading of that file."""
    broken = [
        f"{path}{anchor}"
        for path, anchor in LINK.findall(page.read_text())
        if not _exists(page.parent / path if path else page, anchor)
    ]
    assert not broken


def _exists(target: Path, anchor: str) -> bool:
    if not anchor:
        return target.exists()
    return target.is_file() and anchor in _anchors(target)


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {"#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


SOURCE = ROOT / "src" / "spinney"
FOLDERS = [
    ROOT,
    ROOT / "examples" / "backend-plugin",
    SOURCE,
    *(folder for folder in SOURCE.rglob("*") if folder.is_dir()),
]
TESTS = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_and_module_that_a_page_names_exists(page: Path) -> None:
    """Tests are named by function, modules by their path from the root, from `src/spinney` or from a folder of it."""
    code = re.findall(r"`([\w/.]+)`", page.read_text())
    functions = {name for name in code if re.fullmatch(r"test_\w+", name)}
    assert {name for name in functions if f"def {name}(" not in TESTS} == set()
    modules = {name for name in code if re.fullmatch(r"[\w/]+/\w+\.py", name)}
    assert {name for name in modules if not any((folder / name).exists() for folder in FOLDERS)} == set()
