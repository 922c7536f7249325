"""Writes the tables of the documentation: which story each scheduler can tell, and what happens instead.

`python -m tests.schedulers.report` writes them into docs/users/schedulers, between the lines that mark their place.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from spinney.testing.schedulers.entries import ENTRIES
from tests.schedulers.stories import STORIES
from tests.schedulers.table import CANNOT

DOCS = Path(__file__).resolve().parents[2] / "docs" / "users" / "schedulers"
# The page of each scheduler; both releases of kube-scheduler share one.
PAGES = {
    "kube-scheduler.md": ("kube-1.35", "kube-1.36"),
    "volcano.md": ("volcano",),
    "koordinator.md": ("koordinator",),
    "yunikorn.md": ("yunikorn",),
    "kai.md": ("kai",),
    "spinney.md": ("spinney",),
    "README.md": tuple(ENTRIES),
}
BEGIN = "<!-- stories: written by `python -m tests.schedulers.report` -->"
END = "<!-- end of stories -->"


def page(name: str) -> str:
    """A page with its table as it should be."""
    text = (DOCS / name).read_text()
    if BEGIN not in text or END not in text:
        raise ValueError(f"{name} has no lines {BEGIN} and {END}")
    table = overview() if name == "README.md" else details(PAGES[name])
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: f"{BEGIN}\n{table}{END}", text, flags=re.DOTALL)


def overview() -> str:
    """All schedulers side by side: yes, or where to read on."""
    titles = [ENTRIES[name].title for name in ENTRIES]
    rows = [f"| | {' | '.join(titles)} |", f"|---|{'---|' * len(titles)}"]
    for story in STORIES.values():
        cells = ["instead" if (name, story.name) in CANNOT else "yes" for name in ENTRIES]
        rows.append(f"| {story.title} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def details(names: tuple[str, ...]) -> str:
    """One scheduler's stories: yes, or what happens instead."""
    titles = [ENTRIES[name].title for name in names]
    rows = [f"| | {' | '.join(titles)} |", f"|---|{'---|' * len(titles)}"]
    for story in STORIES.values():
        instead = [CANNOT.get((name, story.name)) for name in names]
        rows.append(f"| {story.title} | {' | '.join(each.text if each else 'yes' for each in instead)} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Write all pages."""
    for name in PAGES:
        (DOCS / name).write_text(page(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
