"""The undo log: every change to the state is recorded with what takes it back."""

from __future__ import annotations

from collections.abc import Callable
from operator import setitem
from typing import Any

# The function that undoes a change, and its three arguments.
Entry = tuple[Callable[[Any, Any, Any], object], Any, Any, Any]


class UndoLog:
    """Changes in order; the latest are undone first, in time linear in their number."""

    __slots__ = ("_items", "record")

    def __init__(self) -> None:
        # Four items for each change: a tuple for each would be one more object for Python's cycle collector to visit.
        self._items: list[Any] = []
        # The list's own method: moves record many entries, and another call would cost measurable time.
        self.record: Callable[[Entry], None] = self._items.extend

    def __len__(self) -> int:
        return len(self._items)

    def set(self, target: object, attribute: str, value: object) -> None:
        """Set an attribute."""
        self.record((setattr, target, attribute, getattr(target, attribute)))
        setattr(target, attribute, value)

    def put(self, table: Any, key: Any, value: Any) -> None:
        """Replace an item of a list or a dictionary."""
        self.record((setitem, table, key, table[key]))
        table[key] = value

    def undo(self, length: int) -> None:
        """Take back every change since the log had a length."""
        items = reversed(self._items[length:])
        del self._items[length:]
        for value, key, target, undo in zip(items, items, items, items, strict=True):
            undo(target, key, value)
