"""Go durations, as Kubernetes writes them (`4h0m0s`, `1.5s`, `300ms`), and Prometheus ones (`1w2d`)."""

from __future__ import annotations

import re
from fractions import Fraction

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_PROMETHEUS = re.compile(r"(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?", re.ASCII)
_PROMETHEUS_SECONDS = (31_536_000.0, 604_800.0, 86_400.0, 3_600.0, 60.0, 1.0, 0.001)
_LARGEST = (1 << 63) - 1
# No duration of 64 bits needs more characters.
_LONGEST = 128


class DurationError(ValueError):
    """Text that is not a duration."""


def parse(text: str) -> int:
    """Nanoseconds: `1h30m` → 5400000000000."""
    rest = text[1:] if text[:1] in "+-" else text
    if rest == "0":
        return 0
    total = Fraction(0)
    at = 0
    while at < len(rest) <= _LONGEST:
        part = _PART.match(rest, at)
        if not part:
            break
        total += Fraction(part[1]) * _UNITS[part[2]]
        at = part.end()
    if at == 0 or at < len(rest) or total > _LARGEST + (text[:1] == "-"):
        raise DurationError(
            f"duration {text[:_LONGEST]!r} cannot be read: expected numbers with units out of ns, us, ms, s, m, h "
            "(30s, 1h30m, 1.5h)"
        )
    return -int(total) if text[:1] == "-" else int(total)


def seconds(text: str) -> float:
    """Seconds: `1m30s` → 90.0."""
    return parse(text) / 1_000_000_000


def prometheus_seconds(text: str) -> float:
    """Seconds of a Prometheus duration, whose units run from years to milliseconds: `1w` → 604800.0."""
    if text == "0":
        return 0.0
    match = _PROMETHEUS.fullmatch(text) if len(text) <= _LONGEST else None
    if not text or not match:
        raise DurationError(
            f"duration {text[:_LONGEST]!r} cannot be read: expected numbers with units y, w, d, h, m, s, ms (1w2d)"
        )
    return sum(int(number) * size for number, size in zip(match.groups(), _PROMETHEUS_SECONDS, strict=True) if number)
