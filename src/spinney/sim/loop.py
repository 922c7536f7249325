"""Virtual time: an event loop that never waits, but jumps to its next timer."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar, TypeVarTuple, Unpack

from spinney.kube.clock import LoopClock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

START = datetime(2026, 1, 1, tzinfo=UTC)

# Rounds of the loop in one moment; the largest bursts of work we know take a tenth of them.
MOST_ROUNDS = 2_000_000


class Deadlock(RuntimeError):
    """Nothing is ready and no timer is set: in virtual time nothing could ever happen again."""


class Livelock(RuntimeError):
    """Callbacks call each other without end, so virtual time never moves."""


class OutOfTime(RuntimeError):
    """The time that a virtual run was given is over."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks in the order asyncio would, and sets its clock forward instead of sleeping.

    There is no selector behind it, so no sockets, pipes, signals, subprocesses or threads: whatever runs here talks
    to the embedded API server by direct calls, and the same program with the same seed takes the same steps.
    """

    def __init__(self, start: datetime = START, limit: float | None = None, most_rounds: int = MOST_ROUNDS) -> None:
        super().__init__()
        self._rounds = 0
        self._most_rounds = most_rounds
        self._now = 0.0
        self._limit = limit
        # A timer counts as due within this much; far below any real delay, above the rounding of years in seconds.
        self._clock_resolution = 1e-6
        self._selector = _Jump(self)
        self.clock = LoopClock(start, self)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def jump(self, timeout: float | None) -> None:
        """Stand in for a wait: move the clock by the whole of it at once."""
        if timeout is None:
            raise Deadlock(f"nothing is ready and no timer is set. {_who_waits(self)}")
        self._rounds = 0 if timeout > 0 else self._rounds + 1
        if self._rounds > self._most_rounds:
            raise Livelock(f"no time has passed in {self._most_rounds} rounds. {_who_waits(self)}")
        if self._limit is not None and self._now + timeout > self._limit:
            raise OutOfTime(f"still running after {self._limit:g} virtual seconds. {_who_waits(self)}")
        self._now += max(timeout, 0.0)

    def lift_limits(self) -> None:
        """Let the tasks that are cancelled at the end take any time."""
        self._limit = None
        self._rounds = 0

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Refused: a thread would not take part in virtual time."""
        raise RuntimeError(f"{getattr(func, '__qualname__', func)} wants a thread, and virtual time has none")

    async def getaddrinfo(self, *_: Any, **__: Any) -> Any:
        """Refused with the error of a machine without a network: nothing outside the process can answer."""
        raise OSError(errno.ENETUNREACH, "virtual time has no network")

    async def sock_connect(self, *_: Any) -> None:
        """Refused like `getaddrinfo`, for hosts that are given as an address."""
        raise OSError(errno.ENETUNREACH, "virtual time has no network")

    # asyncio calls these on every loop; without a selector there is nothing to do.
    def _process_events(self, event_list: list[object]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


class _Jump:
    """Sits where asyncio expects a selector."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[object]:
        self._loop.jump(timeout)
        return []


def run_virtual(
    main: Coroutine[Any, Any, T],
    *,
    start: datetime = START,
    limit: float | None = None,
    most_rounds: int = MOST_ROUNDS,
) -> T:
    """Run a coroutine to its end in virtual time that begins at `start`, for at most `limit` virtual seconds."""
    with virtual_loop(start=start, limit=limit, most_rounds=most_rounds) as loop:
        return loop.run_until_complete(main)


@contextmanager
def virtual_loop(
    *, start: datetime = START, limit: float | None = None, most_rounds: int = MOST_ROUNDS
) -> Iterator[VirtualLoop]:
    """A virtual loop that is tidied up afterwards: tasks that are left are cancelled."""
    loop = VirtualLoop(start, limit, most_rounds)
    try:
        yield loop
    finally:
        loop.lift_limits()
        _cancel_all(loop)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def clock() -> LoopClock:
    """The clock of the virtual loop that is running."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        raise RuntimeError("no virtual loop is running: start with run_virtual()")
    return loop.clock


def _cancel_all(loop: VirtualLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


def _who_waits(loop: VirtualLoop) -> str:
    """Name the tasks and the line each stands at, so that a deadlock can be read from its message."""
    waiting = sorted(f"{task.get_name()} at {_where(task)}" for task in asyncio.all_tasks(loop))
    shown = "; ".join(waiting[:20]) or "no task at all"
    more = f"; and {len(waiting) - 20} more" if len(waiting) > 20 else ""
    return f"At {loop.time():g} s there wait: {shown}{more}"


def _where(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=1)
    if not frames:
        return "its end"
    return f"{frames[0].f_code.co_qualname}:{frames[0].f_lineno}"
