"""Forks of this process: a virtual loop can be copied, so many runs can start from one moment."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import sys
from collections.abc import Callable
from selectors import EVENT_READ, DefaultSelector
from typing import Any


class Forks:
    """Runs continuations of this moment in child processes, a few at a time."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        # By the reading end of a child's pipe: its place among the results, and its process id.
        self._children: dict[int, tuple[int, int]] = {}
        self._results: dict[int, Any] = {}
        self._forked = 0

    def fork(self) -> Callable[[object], None] | None:
        """Fork, once fewer children run than allowed.

        The child gets a function that delivers its result and ends it; the parent gets None.
        """
        while len(self._children) >= self._jobs:
            self._read_one()
        reader, writer = os.pipe()
        sys.stdout.flush()
        loop = asyncio._get_running_loop()
        child = os.fork()
        if child:
            os.close(writer)
            self._children[reader] = (self._forked, child)
            self._forked += 1
            return None
        # A child lives for a moment: collecting would only copy pages that it shares with its parent.
        gc.disable()
        # asyncio forgets the running loop in a child.
        asyncio._set_running_loop(loop)

        def deliver(result: object) -> None:
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(result, pipe)
            os._exit(0)

        return deliver

    def results(self) -> list[Any]:
        """Wait for all children; what they delivered since the last call, in the order in which they were forked."""
        while self._children:
            self._read_one()
        results = [self._results[place] for place in sorted(self._results)]
        self._results.clear()
        return results

    def _read_one(self) -> None:
        """Wait for the child that is done first."""
        with DefaultSelector() as selector:
            for reader in self._children:
                selector.register(reader, EVENT_READ)
            (ready, _), *_ = selector.select()
        place, child = self._children.pop(ready.fd)
        with os.fdopen(ready.fd, "rb") as pipe:
            self._results[place] = pickle.load(pipe)
        os.waitpid(child, 0)
