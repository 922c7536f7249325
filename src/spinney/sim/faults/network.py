"""The network between components and the API server: it delays, breaks watches, and ends processes at their writes."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from spinney.kube.chance import Chance
from spinney.kube.client.transport import Handler, InProcess, Request, Response, User
from spinney.kube.clock import Clock, LoopClock
from spinney.kube.errors import ConnectionLost
from spinney.sim.faults.kinds import CALM, CLOCK_JUMPED, DELAYED, Kind, Storm, lost_answer, refusal

_EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure",'
    b'"message":"too old resource version","reason":"Expired","code":410}}\n'
)
_CLOCK_JUMP_SECONDS = 120.0
# The longest pause between two tries of a component, and some time for the rest of the work.
_WEBHOOKS_STAY_SECONDS = 90.0


@dataclass(frozen=True)
class Crash:
    """The process that sends the write of this number ends, before the write arrives or right after."""

    number: int
    after: bool
    # Only writes whose body contains this are counted.
    containing: bytes = b""


@dataclass
class Network:
    """State that all connections share: latency, injected faults, and the writes so far."""

    chance: Chance
    # Each request and each answer takes up to so many seconds.
    lag: float
    crash: Crash | None = None
    storm: Storm = CALM
    # How many of the storm's faults happen; the shortest failing prefix is found by counting up.
    most_faults: int = 1 << 30
    # Faults happen and writes are recorded only while this is set.
    armed: bool = False
    # Asked at each write of a component, with its number: the fault that happens there.
    at_write: Callable[[int], Kind | None] = lambda number: None
    # Starts a disturbance beside the write: a user, a node, a second leader, webhooks.
    beside: Callable[[str, str], None] = lambda what, process: None
    # Called when the scheduler evicts a pod, with its namespace and name.
    evicting: Callable[[str, str], None] = lambda namespace, name: None
    writes: list[str] = field(default_factory=list)
    matched_writes: int = 0
    # The write at which the crash happened, and how often other faults did.
    crashed_at: str = ""
    fault_counts: Counter[str] = field(default_factory=Counter)
    clock_offsets: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    # Webhooks refuse connections until this time.
    webhooks_down_until: float = 0.0
    # Of any client: the time of the last write, and the last few.
    last_write: float = 0.0
    recent_writes: deque[str] = field(default_factory=lambda: deque(maxlen=12))
    story: list[str] = field(default_factory=list)

    def tell(self, who: str, what: str) -> None:
        """Add a line to the story."""
        if self.armed:
            self.story.append(f"{asyncio.get_running_loop().time():10.3f}  {who:<26} {what}")

    def happens(self, fault: str, rate: float) -> bool:
        """Draw whether a fault of the storm happens now."""
        if not rate or not self.armed or self.chance.random() >= rate:
            return False
        if self.fault_counts.total() >= self.most_faults:
            return False
        self.fault_counts[fault] += 1
        return True

    def fault_at(self, process: str, request: Request) -> Kind | None:
        """Count a write; the fault that happens at it."""
        if not self.armed or not is_write(request):
            return None
        self.writes.append(f"{process}: {request.method} {request.path}")
        kind = self._single(request) or self.at_write(len(self.writes)) or self._drawn(process)
        if kind is not None:
            self.crashed_at = self.crashed_at or self.writes[-1]
            self.tell("FAULT", f"{kind} at write {len(self.writes)}, {self.writes[-1]}")
        return kind

    def _single(self, request: Request) -> Kind | None:
        if self.crash is None or self.crash.containing not in request.body:
            return None
        self.matched_writes += 1
        if self.matched_writes != self.crash.number:
            return None
        return Kind.CRASH_AFTER if self.crash.after else Kind.CRASH_BEFORE

    def _drawn(self, process: str) -> Kind | None:
        storm = self.storm
        if self.happens(CLOCK_JUMPED, storm.clock):
            self.clock_offsets[process] += (self.chance.random() - 0.5) * 2 * _CLOCK_JUMP_SECONDS
            self.tell("FAULT", f"the clock of {process} is {self.clock_offsets[process]:+.0f} s off")
        for what in ("webhooks", "second_leader", "user", "flap"):
            rate = 0.0 if what == "webhooks" and self._webhooks_must_stay() else getattr(storm, what)
            if self.happens(what.replace("_", " "), rate):
                self.beside(what, process)
        if self.happens("crashed", storm.crash):
            return Kind.CRASH_AFTER if self.chance.random() < 0.5 else Kind.CRASH_BEFORE
        if self.happens("refused", storm.refused):
            return Kind.REFUSED
        if self.happens("unanswered", storm.unanswered):
            return Kind.ANSWER_LOST if self.chance.random() < 0.5 else Kind.TIMED_OUT
        return None

    def _webhooks_must_stay(self) -> bool:
        """Whether a further outage would join the last one: together they may outlast the grace periods of gangs."""
        return asyncio.get_running_loop().time() < self.webhooks_down_until + _WEBHOOKS_STAY_SECONDS

    @property
    def clocks_disagree(self) -> float:
        """How many seconds the fastest and the slowest clock are apart."""
        offsets = (0.0, *self.clock_offsets.values())
        return max(offsets) - min(offsets)


def is_write(request: Request) -> bool:
    """Whether a request changes something that users look at: no reviews, Leases or node heartbeats."""
    if request.method == "GET" or ("dryRun", "All") in request.query:
        return False
    if request.path.startswith(("/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/")):
        return False
    return "/leases" not in request.path and not request.path.startswith("/api/v1/nodes/")


class ProcessClock(LoopClock):
    """The clock of one process in virtual time, which a storm sets forward or back."""

    def __init__(self, true: Clock, network: Network, process: str) -> None:
        super().__init__(true.now())
        self._network = network
        self._process = process

    def now(self) -> datetime:
        """The time that this process believes."""
        return super().now() + timedelta(seconds=self._network.clock_offsets[self._process])


class Connection:
    """The transport of one process until it ends; what an ended process still sends never arrives."""

    def __init__(self, server: Handler, user: User, process: str, network: Network) -> None:
        self._server = InProcess(server, user)
        self.user = user
        self._network = network
        self._delayed_until: defaultdict[str, float] = defaultdict(float)
        self.process = process
        self.ended = asyncio.Event()

    async def send(self, request: Request) -> Response:
        """Carry a request and its answer, unless the process ends meanwhile or a fault is injected."""
        await self._travel()
        fault = self._network.fault_at(self.process, request)
        if fault is Kind.CRASH_BEFORE:
            await self._end()
        if fault is Kind.REFUSED:
            return refusal(request, len(self._network.writes))
        response = await self._server.send(request)
        if fault is Kind.CRASH_AFTER:
            await self._end()
        if response.stream is None:
            await self._travel()
            return lost_answer(fault) if fault in (Kind.ANSWER_LOST, Kind.TIMED_OUT) else response
        return Response(response.status, response.body, response.headers, self._watch(request.path, response.stream))

    async def close(self) -> None:
        """Nothing is held open."""

    async def _end(self) -> None:
        self.ended.set()
        await asyncio.Event().wait()

    async def _travel(self) -> None:
        """Wait for one way over the network; forever, once the process has ended."""
        await asyncio.sleep(self._network.chance.random() * self._network.lag)
        if self.ended.is_set():
            await asyncio.Event().wait()

    async def _watch(self, path: str, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The events of a watch, with the storm's delays and losses."""
        async for chunk in events:
            await self._travel()
            await self._delay(path)
            storm, happens = self._network.storm, self._network.happens
            if happens("broken", storm.broken):
                self._network.tell("FAULT", f"the watch of {path} by {self.process} breaks")
                raise ConnectionLost("connection reset")
            if happens("expired", storm.expired):
                self._network.tell("FAULT", f"the watch of {path} by {self.process} has expired")
                yield _EXPIRED
                return
            yield chunk
            if happens("replayed", storm.replayed):
                self._network.tell("FAULT", f"an event of {path} reaches {self.process} twice")
                yield chunk

    async def _delay(self, path: str) -> None:
        """Wait while events of this kind, or of this whole process, are delayed; start such a delay at random."""
        network, now = self._network, asyncio.get_running_loop().time()
        for scope, rate in ((path, network.storm.delay_kind), ("", network.storm.delay_process)):
            if network.happens(DELAYED, rate):
                self._delayed_until[scope] = now + network.chance.random() * network.storm.max_delay
                seconds = self._delayed_until[scope] - now
                network.tell("FAULT", f"events of {scope or 'all kinds'} reach {self.process} {seconds:.1f} s late")
        await asyncio.sleep(max(self._delayed_until[path], self._delayed_until[""]) - now)
