"""Sets of completion indexes as Jobs write them: `0-3,7`."""

from __future__ import annotations

from collections.abc import Iterable


def parse(text: str) -> set[int]:
    """The indexes that a text names."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def render(indexes: Iterable[int]) -> str:
    """Indexes as text; two neighbours are listed, three or more become a range."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(_run(run) for run in runs)


def _run(run: list[int]) -> str:
    if len(run) == 1:
        return str(run[0])
    if len(run) == 2:
        return f"{run[0]},{run[1]}"
    return f"{run[0]}-{run[-1]}"
