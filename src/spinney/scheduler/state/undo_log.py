"""The undo log: every change to the state is recorded with what takes it back."""

from __future__ import annotations

from collections.abc import Callable
from operator import setitem
from typing import Any

# The function that undoes a change, and its three arguments.
Entry = tuple[Callable[[Any, Any, Any], object], Any, Any, Any]


class UndoLog:
    """Changes in order; the latest are undone first, in time linear in their number."""

    __slots__ = ("_entries", "record")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        # The list's own method: moves record many entries, and another call would cost measurable time.
        self.record: Callable[[Entry], None] = self._entries.append

    def __len__(self) -> int:
        return len(self._entries)

    def set(self, target: object, attribute: str, value: object) -> None:
        """Set an attribute."""
        self.record((setattr, target, attribute, getattr(target, attribute)))
        setattr(target, attribute, value)

    def put(self, table: Any, key: Any, value: Any) -> None:
        """Replace an item of a list or a dictionary."""
        self.record((setitem, table, key, table[key]))
        table[key] = value

    def undo(self, length: int) -> None:
        """Take back every change after the first `length` ones."""
        changes = self._entries[length:]
        del self._entries[length:]
        for undo, target, key, value in reversed(changes):
            undo(target, key, value)
