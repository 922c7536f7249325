"""Write into a page what its commands print: `python -m tests.docs.fill docs/users/quickstart.md`, then read the diff.

Output that agrees already stays as it is, shortened with `…` or wrapped as somebody wrote it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.docs.commands import Command, read
from tests.docs.comparing import agrees
from tests.docs.shell import shell, starts_cluster

# What a cluster needs to come to rest after a change.
_REST = 2.0


def fill(path: Path) -> None:
    """Run a page's commands and put in the output that differs."""
    lines = path.read_text().splitlines()
    moved = 0
    with TemporaryDirectory() as folder, shell(Path(folder)) as opened:
        for command in read(path).commands:
            if starts_cluster(command.text):
                printed = opened.start(command)
            else:
                time.sleep(_REST)
                printed = opened.once(command.text).out
            if command.output is None or agrees(command.output, printed):
                continue
            moved += _replace(lines, command, printed, moved)
    path.write_text("\n".join(lines) + "\n")


def _replace(lines: list[str], command: Command, printed: str, moved: int) -> int:
    """Put output below its command, and say by how many lines the page has grown."""
    assert command.output is not None
    start = command.line + moved + command.text.count("\n")
    old = len(command.output.rstrip("\n").splitlines())
    new = [line.rstrip() for line in printed.rstrip().splitlines()]
    lines[start : start + old] = new
    return len(new) - old


if __name__ == "__main__":
    for name in sys.argv[1:]:
        fill(Path(name))
