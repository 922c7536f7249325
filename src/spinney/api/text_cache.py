"""Caches for functions of texts that anybody may send: thousands of long ones would fill the memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")
# Names, label values, images and selectors are shorter.
_LONGEST = 512


class _Results(dict[str, T]):
    """The results of a function, by its argument. A kept one costs no call of Python."""

    def __init__(self, function: Callable[[str], T], most: int) -> None:
        self._function = function
        self._most = most

    def __missing__(self, text: str) -> T:
        result = self._function(text)
        if len(text) <= _LONGEST:
            if len(self) >= self._most:
                self.clear()
            self[text] = result
        return result


def text_cache(most: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Keep the results of a function of a text, but not those of long texts; begin anew when there are too many."""
    return lambda function: _Results(function, most).__getitem__


def text_pair_cache(most: int) -> Callable[[Callable[[str, str], T]], Callable[[str, str], T]]:
    """Keep the last results of a function of two texts, but not those of long ones."""

    def cached(function: Callable[[str, str], T]) -> Callable[[str, str], T]:
        kept = lru_cache(maxsize=most)(function)

        @wraps(function)
        def call(first: str, second: str) -> T:
            return kept(first, second) if len(first) + len(second) <= _LONGEST else function(first, second)

        return call

    return cached
