"""Which lines of ours an input reaches for the first time, by Python's own tracing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import spinney

_OURS = str(Path(spinney.__file__).parent)


class Coverage:
    """Collects steps from line to line; a function of which every line was seen is not looked at again."""

    def __init__(self) -> None:
        self.steps: set[tuple[CodeType, int, int]] = set()
        self._left: dict[CodeType, set[int]] = {}
        self._before = 0

    def __enter__(self) -> None:
        self._before = len(self.steps)
        sys.settrace(self._called)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def is_news(self) -> bool:
        """Whether the last run took a step that none did before."""
        return len(self.steps) > self._before

    def _called(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        code = frame.f_code
        left = self._left.get(code)
        if left is None:
            lines = {line for _, _, line in code.co_lines() if line is not None}
            left = self._left[code] = lines if code.co_filename.startswith(_OURS) else set()
        if not left:
            return None
        steps, last = self.steps, 0

        def line(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal last
            steps.add((code, last, frame.f_lineno))
            last = frame.f_lineno
            left.discard(last)
            return line

        return line
