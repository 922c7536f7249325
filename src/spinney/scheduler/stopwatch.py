"""The time that parts of a plan take, by the caller's clock: no decision depends on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


def _no_clock() -> float:
    return 0.0


class Stopwatch:
    """Seconds spent in one plan, by plugin and by action."""

    def __init__(self, clock: Callable[[], float] = _no_clock) -> None:
        self.clock = clock
        self.plugins: dict[str, float] = {}
        self.actions: dict[str, float] = {}

    @contextmanager
    def plugin(self, name: str) -> Iterator[None]:
        """Measure the installation of a plugin."""
        start = self.clock()
        yield
        self.plugins[name] = self.clock() - start

    @contextmanager
    def action(self, name: str) -> Iterator[None]:
        """Measure an action."""
        start = self.clock()
        yield
        self.actions[name] = self.clock() - start
