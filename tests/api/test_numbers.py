"""Whole numbers that somebody else wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

import spinney
from spinney.api import duration, intstr
from spinney.api.numbers import whole_number


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1 ", "1_0", "0x1", "²", "٣", "1e3", "9" * 19, "9" * 5000])
def test_no_whole_number(text: str) -> None:
    """Digits of other scripts, signs and endless numbers are none."""
    assert whole_number(text) is None


def test_whole_numbers() -> None:
    """Up to 18 digits, so that all of them fit into 64 bits."""
    assert whole_number("0") == 0
    assert whole_number("9" * 18) == 10**18 - 1


def test_nobody_reads_numbers_another_way() -> None:
    """`isdecimal` and `isdigit` are true of texts that `int` refuses, which stopped components."""
    source = Path(spinney.__file__).parent
    others = [
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if ".isdecimal()" in path.read_text() or ".isdigit()" in path.read_text()
    ]
    # Here a single letter is looked at, or the length is bounded before.
    assert sorted(others) == ["api/numbers.py", "api/yaml_reader.py", "cel/functions.py"]


@pytest.mark.parametrize("text", ["9" * 5000 + "h", "1h" * 100, "٣s"])
def test_endless_durations(text: str) -> None:
    """They are refused before they are added up."""
    with pytest.raises(duration.DurationError):
        duration.parse(text)


def test_an_endless_percentage() -> None:
    """It is no percentage."""
    with pytest.raises(intstr.PercentError):
        intstr.at_most("9" * 5000 + "%", 10)
