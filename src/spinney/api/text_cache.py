"""Caches for functions of texts that anybody may send: thousands of long ones would fill the memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")
# Names, label values, images and selectors are shorter.
_LONGEST = 512


def text_cache(most: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Keep the last results of a function of a text, but not those of long texts."""

    def cached(function: Callable[[str], T]) -> Callable[[str], T]:
        kept = lru_cache(maxsize=most)(function)

        @wraps(function)
        def call(text: str) -> T:
            return kept(text) if len(text) <= _LONGEST else function(text)

        return call

    return cached


def text_pair_cache(most: int) -> Callable[[Callable[[str, str], T]], Callable[[str, str], T]]:
    """The same for a function of two texts."""

    def cached(function: Callable[[str, str], T]) -> Callable[[str, str], T]:
        kept = lru_cache(maxsize=most)(function)

        @wraps(function)
        def call(first: str, second: str) -> T:
            return kept(first, second) if len(first) + len(second) <= _LONGEST else function(first, second)

        return call

    return cached
