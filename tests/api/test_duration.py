"""Durations read and write as Go's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import duration

SECOND = 1_000_000_000
READ = {
    "0": 0,
    "5s": 5 * SECOND,
    "+5s": 5 * SECOND,
    "-5.6s": -5_600_000_000,
    ".5s": SECOND // 2,
    "5.s": 5 * SECOND,
    "10ns": 10,
    "11us": 11_000,
    "12µs": 12_000,
    "13ms": 13_000_000,
    "1h15m30.918273645s": 4_530_918_273_645,
    "52763797000ns": 52_763_797_000,
    "9223372036854775807ns": 2**63 - 1,
    "-9223372036854775808ns": -(2**63),
}
WRITTEN = {
    0: "0s",
    1: "1ns",
    1_100: "1.1µs",
    2_200_000: "2.2ms",
    3_300_000_000: "3.3s",
    4 * 60 * SECOND + 5 * SECOND: "4m5s",
    8 * 60 * SECOND + 1: "8m0.000000001s",
    5 * 3600 * SECOND + 6 * 60 * SECOND + 7_001_000_000: "5h6m7.001s",
    4 * 3600 * SECOND: "4h0m0s",
    2**63 - 1: "2562047h47m16.854775807s",
    -30 * SECOND: "-30s",
}


@pytest.mark.parametrize(("text", "nanoseconds"), READ.items())
def test_reading(text: str, nanoseconds: int) -> None:
    """Every unit, fractions, signs and sums."""
    assert duration.parse(text) == nanoseconds


@pytest.mark.parametrize(("nanoseconds", "text"), WRITTEN.items())
def test_writing(nanoseconds: int, text: str) -> None:
    """The form that Go writes into objects."""
    assert duration.render(nanoseconds) == text


@pytest.mark.parametrize("text", ["", "3", "-", "s", ".", "-.", ".s", "1d", "1h 5m", "3000000h", "1x"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """The message names the text and what is allowed."""
    with pytest.raises(duration.DurationError, match="cannot be read"):
        duration.parse(text)


@given(st.integers(-(2**63), 2**63 - 1))
def test_round_trip(nanoseconds: int) -> None:
    """What is written reads back the same."""
    assert duration.parse(duration.render(nanoseconds)) == nanoseconds


def test_seconds() -> None:
    """Timers want seconds."""
    assert duration.seconds("1m30s") == 90.0


@pytest.mark.parametrize(("text", "seconds"), [("0", 0), ("1w", 604800), ("1d12h", 129600), ("1m30s500ms", 90.5)])
def test_prometheus_durations(text: str, seconds: float) -> None:
    """Windows of usage are given in Prometheus' units, which Go does not have."""
    assert duration.prometheus_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "1", "1h1d", "1.5h"])
def test_prometheus_refuses(text: str) -> None:
    """Units fall, and numbers are whole."""
    with pytest.raises(duration.DurationError):
        duration.prometheus_seconds(text)
