"""Clocks: the only source of the current time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """The time that goes into objects; waiting is done by the event loop."""

    def now(self) -> datetime:
        """The current time, in UTC."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The current time, in UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True)
class StoppedClock:
    """A clock that always shows the same moment: everything computed by it is of that moment."""

    moment: datetime

    def now(self) -> datetime:
        """That moment."""
        return self.moment


class LoopClock:
    """A clock that follows the event loop's time from a fixed start, for virtual time."""

    def __init__(self, start: datetime, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop or asyncio.get_running_loop()
        self._start = start
        self._offset = self._loop.time()

    def now(self) -> datetime:
        """The start plus the time that has passed on the loop."""
        return self._start + timedelta(seconds=self._loop.time() - self._offset)


def seconds(moment: datetime) -> datetime:
    """The moment as `metav1.Time` keeps it: whole seconds."""
    return moment.replace(microsecond=0)
