"""Waiting for a real cluster, with more patience than for anything in this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests import waiting

PATIENCE = 600.0


async def until(
    holds: Callable[[], bool], every: float = 0.5, describe: Callable[[], Awaitable[str]] | None = None
) -> None:
    """Look again and again until something holds."""
    await waiting.until(holds, PATIENCE, every, describe)
