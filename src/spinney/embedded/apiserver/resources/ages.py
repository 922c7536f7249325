"""Durations as kubectl prints them."""

from __future__ import annotations

from datetime import datetime


def age(stamp: str | None, now: datetime) -> str:
    """The time since a timestamp."""
    if not stamp:
        return "<unknown>"
    try:
        seconds = int((now - datetime.fromisoformat(stamp)).total_seconds())
    except (ValueError, TypeError):
        # No time, or one without a time zone.
        return "<invalid>"
    return duration(seconds) if seconds >= -1 else "<invalid>"


def duration(seconds: int) -> str:
    """A duration in its one or two largest units."""
    seconds = max(seconds, 0)
    if seconds < 120:
        return f"{seconds}s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 10:
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours, rest = divmod(minutes, 60)
    if hours < 8:
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days, rest = divmod(hours, 24)
    if hours < 192:
        return f"{days}d{rest}h" if rest else f"{days}d"
    if days < 730:
        return f"{days}d"
    years, rest = divmod(days, 365)
    return f"{years}y{rest}d" if rest and years < 8 else f"{years}y"
