"""A binary heap whose order may change while items are in it: after a change, call `sink` for the first item.

The order is an argument of every call: an order that refers to its heaps would be a reference cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
# Whether one thing comes before another.
Before = Callable[[T, T], bool]


def push(items: list[T], item: T, before: Before[T]) -> None:
    """Add an item."""
    child = len(items)
    items.append(item)
    while child > 0:
        parent = (child - 1) // 2
        if not before(items[child], items[parent]):
            break
        items[parent], items[child] = items[child], items[parent]
        child = parent


def pop(items: list[T], before: Before[T]) -> T:
    """Remove and return the first item."""
    last = len(items) - 1
    items[0], items[last] = items[last], items[0]
    sink(items, last, before)
    return items.pop()


def sink(items: list[T], size: int, before: Before[T]) -> None:
    """Move the first of some items down to its place."""
    parent = 0
    while (child := 2 * parent + 1) < size:
        if child + 1 < size and before(items[child + 1], items[child]):
            child += 1
        if not before(items[child], items[parent]):
            break
        items[parent], items[child] = items[child], items[parent]
        parent = child
