"""The one place that knows what time it is."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Tells the time that goes into objects. Waiting is the event loop's business, not the clock's."""

    def now(self) -> datetime:
        """The current time, in UTC."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The current time, in UTC."""
        return datetime.now(UTC)


class LoopClock:
    """Follows the event loop's timers from a fixed start, so that virtual time moves objects and timers alike."""

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
