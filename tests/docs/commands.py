"""The commands of a page, with the output that the page shows for each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
# A comment on the line before a block changes what is done with it.
ALSO_REAL = "also on a real API server"
ELSEWHERE = "run by "
_BLOCK = re.compile(r"(?:^<!-- ([^\n]*) -->\n)?^```(console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Command:
    """One command, the line of the page that it is on, and the output that follows it; None shows nothing."""

    text: str
    line: int
    output: str | None = None
    real: bool = False


@dataclass(frozen=True)
class Page:
    """A page's commands in order, and the files that run its other blocks."""

    path: Path
    commands: list[Command] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)


def read(path: Path) -> Page:
    """Find the commands of a page in its `console` and `sh` blocks."""
    text = path.read_text()
    page = Page(path)
    for block in _BLOCK.finditer(text):
        mark, language, body = block[1] or "", block[2], block[3]
        if mark.startswith(ELSEWHERE):
            page.elsewhere.append(mark.removeprefix(ELSEWHERE))
            continue
        first = text[: block.start(3)].count("\n") + 1
        commands = _console(body, first) if language == "console" else _script(body, first)
        for command in commands:
            command.real = mark == ALSO_REAL
        page.commands.extend(commands)
    return page


def _console(body: str, first: int) -> list[Command]:
    commands: list[Command] = []
    for number, line in enumerate(body.splitlines(), first):
        if line.startswith("$ "):
            commands.append(Command(line[2:], number, ""))
        elif line.startswith("> "):
            commands[-1].text += "\n" + line[2:]
        else:
            commands[-1].output = f"{commands[-1].output}{line}\n"
    return commands


def _script(body: str, first: int) -> list[Command]:
    lines = enumerate(body.splitlines(), first)
    return [Command(line, number) for number, line in lines if line and not line.startswith("#")]
