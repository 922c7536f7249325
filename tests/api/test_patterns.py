"""Regular expressions of users: Go's syntax, in linear time."""

from __future__ import annotations

import pytest

from spinney.api import patterns


@pytest.mark.parametrize("pattern", ["(a", "[a", "a)", "*a", "a**", "(?=a)", "a{1001}", "\\"])
def test_what_go_does_not_parse(pattern: str) -> None:
    """A pattern that Go refuses is refused."""
    with pytest.raises(patterns.PatternError, match="error parsing regexp: "):
        patterns.check(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a\n", False),
        (r"^\d$", "٣", False),
        (r"^(a+)+$", "a" * 10_000 + "!", False),
        (r"\Aab\z", "ab", True),
        ("ä.ö", "xäßö", True),
    ],
)
def test_meaning(pattern: str, text: str, matches: bool) -> None:
    """The end is the end, classes are ASCII, and no pattern takes longer than its text is long."""
    assert patterns.found_in(pattern, text) is matches
