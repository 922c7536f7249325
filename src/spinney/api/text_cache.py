"""A cache for functions of texts that anybody may send."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")
# Names, label values, images and selectors are shorter.
_LONGEST = 512


def text_cache(most: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Keep the last results of a function of texts, but not those of long texts, thousands of which fill the memory."""

    def cached(function: Callable[..., T]) -> Callable[..., T]:
        kept = lru_cache(maxsize=most)(function)

        @wraps(function)
        def call(*texts: str) -> T:
            for text in texts:
                if len(text) > _LONGEST:
                    return function(*texts)
            return kept(*texts)

        return call

    return cached
