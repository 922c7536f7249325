"""Times on the wire: RFC 3339 in UTC, as `metav1.Time` and `metav1.MicroTime` are written."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """A `metav1.Time`: whole seconds."""
    return f"{_utc(moment).isoformat(timespec='seconds')}Z"


def rfc3339_milli(moment: datetime) -> str:
    """Milliseconds, for people."""
    return f"{_utc(moment).isoformat(timespec='milliseconds')}Z"


def rfc3339_micro(moment: datetime) -> str:
    """A `metav1.MicroTime`: microseconds."""
    return f"{_utc(moment).isoformat(timespec='microseconds')}Z"


def _utc(moment: datetime) -> datetime:
    """The moment in UTC without its time zone; one without a zone is taken to be UTC."""
    if moment.tzinfo is not None and moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.replace(tzinfo=None)
