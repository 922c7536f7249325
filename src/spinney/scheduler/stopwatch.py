"""How long the parts of a plan take, by a clock that the caller brings: the core has none and decides nothing by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


def _no_clock() -> float:
    return 0.0


class Stopwatch:
    """Seconds spent in one plan, by plugin as it takes part in it, and by action."""

    def __init__(self, clock: Callable[[], float] = _no_clock) -> None:
        self.clock = clock
        self.plugins: dict[str, float] = {}
        self.actions: dict[str, float] = {}

    @contextmanager
    def plugin(self, name: str) -> Iterator[None]:
        """While a plugin takes part."""
        start = self.clock()
        yield
        self.plugins[name] = self.clock() - start

    @contextmanager
    def action(self, name: str) -> Iterator[None]:
        """While an action runs."""
        start = self.clock()
        yield
        self.actions[name] = self.clock() - start
