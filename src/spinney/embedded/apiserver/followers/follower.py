"""The shape of all followers: note every write at once, and act on it in the next turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from spinney.embedded.apiserver.store.store import Event


class Follower(Protocol):
    """Is called for every write to the tables that it follows."""

    # Their names; None for all tables.
    tables: frozenset[str] | None

    def follow(self, table: str, event: Event) -> None:
        """Note a write. Called before the writer continues, so it must not write itself."""


class NextTurn:
    """Runs an action once in the next turn of the loop, however often it was scheduled."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._scheduled = False

    def schedule(self) -> None:
        """Run the action soon."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        self._action()
