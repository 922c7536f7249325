"""Durations are read as Go reads them."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize(("text", "nanoseconds"), READ.items())
def test_reading(text: str, nanoseconds: int) -> None:
    """Every unit, fractions, signs and sums."""
    assert duration.parse(text) == nanoseconds


@pytest.mark.parametrize("text", ["", "3", "-", "s", ".", "-.", ".s", "1d", "1h 5m", "3000000h", "1x"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """The message names the text and what is allowed."""
    with pytest.raises(duration.DurationError, match="cannot be read"):
        duration.parse(text)


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
