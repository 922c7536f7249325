"""Coroutines as tests in virtual time."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any

from spinney.sim.loop import run_virtual

# No test of ours needs more than a virtual month.
LIMIT = 31 * 86400.0


def virtual(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in virtual time."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        run_virtual(test(*args, **kwargs), limit=LIMIT)

    return run


def first_argument_from(
    run: Callable[[Callable[[Any], Awaitable[None]]], None],
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """A decorator of tests: `run` gives them their first argument, pytest the others."""

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        def decorated(**fixtures: Any) -> None:
            run(lambda first: test(first, **fixtures))

        signature = inspect.signature(test)
        decorated.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])  # type: ignore[attr-defined]  # pytest asks for it
        decorated.__name__, decorated.__doc__, decorated.__module__ = test.__name__, test.__doc__, test.__module__
        return decorated

    return decorate
