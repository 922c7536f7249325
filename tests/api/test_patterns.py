"""Regular expressions of users: Go's syntax and words, in linear time."""

from __future__ import annotations

import pytest

from spinney.api import patterns


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(a", "missing closing ): `(a`"),
        ("[a", "missing closing ]: `[a`"),
        ("a)", "unexpected ): `a)`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_what_go_does_not_parse(pattern: str, problem: str) -> None:
    """A pattern that Go refuses is refused, with Go's words."""
    with pytest.raises(patterns.PatternError) as caught:
        patterns.check(pattern)
    assert str(caught.value) == f"error parsing regexp: {problem}"


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
