"""Regular expressions that users give: Go's syntax, and time linear in the text, whatever the expression."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


# The largest expressions of known definitions have about 2,000 characters.
_LONGEST = 4096
# Linear time is not little time: this many characters times states are looked at, about half a second.
MOST_STEPS = 20_000_000


class PatternError(ValueError):
    """The text is not a regular expression."""


class TooLong(ValueError):
    """The text is too long for the expression."""


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    if len(pattern) > _LONGEST:
        raise PatternError(f"error parsing regexp: expression is longer than {_LONGEST} characters")
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        raise PatternError(f"error parsing regexp: {error.args[0].decode(errors='replace')}") from None
    except UnicodeError:
        raise PatternError("error parsing regexp: invalid UTF-8") from None


def check(pattern: str) -> None:
    """Raise PatternError unless the text is a regular expression."""
    _compiled(pattern)


@lru_cache(maxsize=4096)
def states(pattern: str) -> int:
    """The size of an expression, which times the length of a text bounds the work; 1 if it is none."""
    try:
        return int(_compiled(pattern).programsize)
    except PatternError:
        return 1


def steps(pattern: str, text: str) -> int:
    """The most work that an expression has with a text."""
    return states(pattern) * len(text)


def found_in(pattern: str, text: str) -> bool:
    """Whether a part of the text matches."""
    if steps(pattern, text) > MOST_STEPS:
        raise TooLong(f"a text of {len(text)} characters takes too long to match")
    return _compiled(pattern).search(text) is not None


def first(pattern: str, text: str) -> str:
    """The first part that matches, or nothing."""
    match = _compiled(pattern).search(text)
    return match.group(0) if match else ""


def every(pattern: str, text: str) -> list[str]:
    """All parts that match; as in Go, an empty one right after another does not count."""
    parts: list[str] = []
    end = -1
    for match in _compiled(pattern).finditer(text):
        if match.end() > match.start() or match.start() != end:
            parts.append(match.group(0))
        end = match.end()
    return parts
