"""Run a program on the event loop until it ends or gets a signal to stop."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Any

from spinney.kube.gc_tuning import collect_rarely


def run_until_stopped(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on the fastest loop there is; SIGTERM and Ctrl-C end it in good order."""
    collect_rarely()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        loop = runner.get_loop()
        task = loop.create_task(main)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            return


def _loop_factory() -> Any:
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415  # absent on Windows

    return uvloop.new_event_loop
