"""Run several writes concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

# One thing to do, handed to `all_of` with others.
Work = Coroutine[Any, Any, object]


async def all_of(work: Iterable[Work]) -> None:
    """Run coroutines concurrently; the first error is raised after all have ended."""
    pending = list(work)
    if len(pending) < 2:
        # Most reconciles have nothing to write, or one object: no task is needed for that.
        for coroutine in pending:
            await coroutine
        return
    outcomes = await asyncio.gather(*pending, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
