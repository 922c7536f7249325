"""Several writes at once, that are over when all of them are."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

# One thing to do, handed to `all_of` with others.
Work = Coroutine[Any, Any, object]


async def all_of(work: Iterable[Work]) -> None:
    """Do things at once; the first error is raised when all are done."""
    things = list(work)
    if len(things) < 2:
        # Most looks find nothing to do, or one thing: no task is needed for that.
        for thing in things:
            await thing
        return
    outcomes = await asyncio.gather(*things, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
