"""Forks of this process: a virtual loop can be copied, so many runs can start from one moment."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any


class Forks:
    """Runs continuations of this moment in child processes, a few at a time."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        # The reading end of a pipe, and the child's process id.
        self._children: list[tuple[int, int]] = []

    @property
    def full(self) -> bool:
        """Whether as many children run as allowed."""
        return len(self._children) >= self._jobs

    @property
    def any(self) -> bool:
        """Whether a child still runs."""
        return bool(self._children)

    def read(self) -> Any:
        """Wait for the result of the oldest child."""
        reader, child = self._children.pop(0)
        with os.fdopen(reader, "rb") as pipe:
            result = pickle.load(pipe)
        os.waitpid(child, 0)
        return result

    def fork(self) -> Callable[[object], None] | None:
        """Fork. The child gets a function that delivers its result and ends it; the parent gets None."""
        reader, writer = os.pipe()
        sys.stdout.flush()
        loop = asyncio.get_running_loop()
        child = os.fork()
        if child:
            os.close(writer)
            self._children.append((reader, child))
            return None
        # asyncio forgets the running loop in a child.
        asyncio._set_running_loop(loop)

        def deliver(result: object) -> None:
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(result, pipe)
            os._exit(0)

        return deliver
