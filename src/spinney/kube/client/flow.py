"""Client-side flow control: limits on concurrent requests and requests per second, with priorities."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from enum import IntEnum

from spinney.kube.client.transport import Request

# A token is filled in fractions, so it counts as whole slightly below 1.
_WHOLE = 1.0 - 1e-6
# Turns of the loop from a write to the writes it causes: a watch event, a reconcile.
_TURNS = 3
# Groups whose objects are questions, which the server answers at once.
_REVIEWS = frozenset(("authentication.k8s.io", "authorization.k8s.io"))


class Priority(IntEnum):
    """The order of waiting requests: leases first, then what users wait for, what starts pods, status and events last.

    A review of admission has a deadline: behind thousands of writes of its component it would be refused.
    """

    LEASE = 0
    REVIEW = 1
    POD = 2
    NORMAL = 3
    STATUS = 4
    EVENT = 5


def priority_of(request: Request) -> Priority:
    """The priority of a request by its path and method; `Client.turn` sets another."""
    parts = request.path.split("/")
    if "coordination.k8s.io" in parts:
        return Priority.LEASE
    if ("dryRun", "All") in request.query or _REVIEWS.intersection(parts) or _is_discovery(request, parts):
        return Priority.REVIEW
    if parts[-1] in ("binding", "eviction") or (request.method == "POST" and parts[-1] == "pods"):
        return Priority.POD
    if parts[-1] == "status":
        return Priority.STATUS
    # Reading events is as urgent as reading anything.
    if request.method != "GET" and "events" in parts:
        return Priority.EVENT
    return Priority.NORMAL


def _is_discovery(request: Request, parts: list[str]) -> bool:
    """Whether a request asks what kinds there are: reviews do."""
    return request.method == "GET" and len(parts) <= (4 if "apis" in parts[:2] else 3)


class Flow:
    """Admits requests by priority: `at_once` in flight, `per_second` on average after a burst.

    Leases never wait for others in flight, so that a busy component keeps its lease. Status and events get one place in
    32 while other requests are in flight: the server has no order of its own, but nothing may wait forever.
    """

    def __init__(
        self,
        at_once: int = 64,
        per_second: float = 2000.0,
        burst: int = 4000,
    ) -> None:
        self._at_once = at_once
        self._late_at_once = max(at_once // 32, 1)
        self._per_second = per_second
        self._burst = burst
        self._in_flight = 0
        self._late_in_flight = 0
        self._tokens = float(burst)
        self._filled_at = 0.0
        self._sequence = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._waiting)

    def turn(self, priority: int) -> Turn:
        """A place in the flow, held for a block."""
        return Turn(self, priority)

    async def enter(self, priority: int) -> None:
        """Wait for a place."""
        self._fill()
        if not self._waiting and self._has_room(priority):
            self._take(priority)
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sequence += 1
        heapq.heappush(self._waiting, (priority, self._sequence, waiter))
        self._admit()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.leave(priority)
            raise

    def leave(self, priority: int) -> None:
        """Free a place."""
        self._in_flight -= 1
        self._late_in_flight -= priority >= Priority.STATUS
        self._admit()

    def _take(self, priority: int) -> None:
        self._tokens -= 1
        self._in_flight += 1
        self._late_in_flight += priority >= Priority.STATUS

    def _admit(self) -> None:
        self._fill()
        while self._waiting:
            priority, _, waiter = self._waiting[0]
            if waiter.done():
                heapq.heappop(self._waiting)
                continue
            if not self._has_room(priority):
                break
            heapq.heappop(self._waiting)
            self._take(priority)
            waiter.set_result(None)
        self._wake_later()

    def _has_room(self, priority: int) -> bool:
        if self._tokens < _WHOLE:
            return False
        if priority == Priority.LEASE:
            return True
        if priority >= Priority.STATUS and self._in_flight > self._late_in_flight >= self._late_at_once:
            return False
        return self._in_flight < self._at_once

    def _fill(self) -> None:
        now = asyncio.get_running_loop().time()
        self._tokens = min(float(self._burst), self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now

    def _wake_later(self) -> None:
        if not self._waiting or self._tokens >= _WHOLE or self._timer is not None:
            return
        delay = (1.0 - self._tokens) / self._per_second
        self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._admit()


class InProcessFlow(Flow):
    """Flow control for a server in this process, which responds before another request can be sent.

    A place is freed some turns of the loop later, when others have seen the write and queued their requests. So
    priorities work as they do over a network. There is no limit per second.
    """

    def __init__(self, at_once: int = 32) -> None:
        super().__init__(at_once)
        # Requests that ended in this round, and in the one before: the latter free their places next.
        self._left: list[int] = []
        self._resting: list[int] = []

    def leave(self, priority: int) -> None:
        """Free a place some turns of the loop later."""
        if not self._left and not self._resting:
            self._pass(_TURNS)
        self._left.append(priority)

    def _pass(self, turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(self._pass, turns - 1)
            return
        self._in_flight -= len(self._resting)
        self._late_in_flight -= sum(priority >= Priority.STATUS for priority in self._resting)
        self._resting, self._left = self._left, []
        self._admit()
        if self._left or self._resting:
            self._pass(_TURNS)

    def _fill(self) -> None:
        self._tokens = float(self._burst)


class PerTurn(Flow):
    """Lets a bounded number of requests to a server in this process pass in one turn of the loop, in their order.

    The server answers them without a pause: a controller that creates hundreds of pods would keep everybody waiting
    who asks over a socket.
    """

    def __init__(self, at_once: int = 16) -> None:
        super().__init__(at_once)
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._queue)

    async def enter(self, priority: int) -> None:
        """Wait for a turn that has room."""
        if self._in_flight == 0:
            asyncio.get_running_loop().call_soon(self._next_turn)
        if self._in_flight < self._at_once and not self._queue:
            self._in_flight += 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(waiter)
        await waiter

    def leave(self, priority: int) -> None:
        """A place is freed by the next turn."""

    def _next_turn(self) -> None:
        self._in_flight = 0
        while self._queue and self._in_flight < self._at_once:
            waiter = self._queue.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._in_flight += 1
        if self._in_flight:
            asyncio.get_running_loop().call_soon(self._next_turn)


class Turn:
    """A place in the flow."""

    __slots__ = ("_flow", "_priority")

    def __init__(self, flow: Flow, priority: int) -> None:
        self._flow = flow
        self._priority = priority

    async def __aenter__(self) -> None:
        await self._flow.enter(self._priority)

    async def __aexit__(self, *_: object) -> None:
        self._flow.leave(self._priority)
