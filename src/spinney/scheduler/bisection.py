"""A search for the smallest number that is enough, where each try is expensive and small numbers are likely."""

from __future__ import annotations

from collections.abc import Callable


def smallest(works: Callable[[int], bool], most: int) -> int:
    """Return the smallest number up to a bound that works, by doubling and then bisection; 0 if none does."""
    low, size = 0, 1
    while not works(size):
        if size == most:
            return 0
        low, size = size, min(2 * size, most)
    while size - low > 1:
        middle = (low + size) // 2
        if works(middle):
            size = middle
        else:
            low = middle
    return size
