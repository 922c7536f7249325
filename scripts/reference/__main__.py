"""Write docs/users/reference from the code: `make reference`."""

from __future__ import annotations

from pathlib import Path

from scripts.reference import api, commands, configuration, metrics, reasons

PAGES = {
    "cli.md": commands.page,
    "api.md": api.page,
    "configuration.md": configuration.page,
    "metrics.md": metrics.page,
    "reasons.md": reasons.page,
}


def write(folder: Path) -> None:
    """Write every page of the reference into a folder."""
    for name, page in PAGES.items():
        (folder / name).write_text(page())


if __name__ == "__main__":
    write(Path(__file__).parents[2] / "docs" / "users" / "reference")
