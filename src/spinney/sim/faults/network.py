"""The network between components and the API server: it delays, breaks watches, and ends processes at their writes."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from typing import Protocol

from spinney.kube.chance import Chance
from spinney.kube.client.transport import Handler, Request, Response, User
from spinney.kube.errors import ConnectionLost

_EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure",'
    b'"message":"too old resource version","reason":"Expired","code":410}}\n'
)


class Fault(Protocol):
    """Something that goes wrong on a network once it is injected."""

    def inject(self, network: Network) -> None:
        """Let it happen from now on."""


@dataclass(frozen=True)
class Crash:
    """The process that sends the write of this number ends, before the write arrives or right after."""

    number: int
    after: bool
    # Only writes whose body contains this are counted.
    containing: bytes = b""

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} write {self.number}"

    def inject(self, network: Network) -> None:
        """Count the writes of this network from now on."""
        network.crash = self


@dataclass(frozen=True)
class Storm:
    """Random faults from a seed; each rate is the probability per watch event or, for crashes, per write."""

    seed: int
    # Events of one kind, or all events of one process, are delayed by up to `max_delay` seconds.
    max_delay: float = 0.0
    delay_kind: float = 0.0
    delay_process: float = 0.0
    # The connection breaks and loses the event; or the server no longer has the version to continue from.
    broken: float = 0.0
    expired: float = 0.0
    crash: float = 0.0

    def __str__(self) -> str:
        return " ".join(f"{name} {value}" for name, value in asdict(self).items() if value)

    def inject(self, network: Network) -> None:
        """Draw faults on this network from now on."""
        network.chance = Chance(self.seed)
        network.storm = self


@dataclass
class Network:
    """State that all connections share: latency, injected faults, and the writes so far."""

    chance: Chance
    # Each request and each answer takes up to so many seconds.
    lag: float
    crash: Crash | None = None
    storm: Storm = Storm(0)
    # Faults happen and writes are recorded only while this is set.
    armed: bool = False
    writes: list[str] = field(default_factory=list)
    matched_writes: int = 0
    # The write at which the crash happened, and how often other faults did.
    crashed_at: str = ""
    fault_counts: Counter[str] = field(default_factory=Counter)
    # Of any client: the time of the last write, and the last few.
    last_write: float = 0.0
    recent_writes: deque[str] = field(default_factory=lambda: deque(maxlen=12))


def is_write(request: Request) -> bool:
    """Whether a request changes something that users look at: no reviews, Leases or node heartbeats."""
    if request.method == "GET" or ("dryRun", "All") in request.query:
        return False
    if request.path.startswith(("/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/")):
        return False
    return "/leases" not in request.path and not request.path.startswith("/api/v1/nodes/")


class Connection:
    """The transport of one process until it ends; what an ended process still sends never arrives."""

    def __init__(self, server: Handler, user: User, process: str, network: Network) -> None:
        self._server = server
        self._user = user
        self._network = network
        self._delayed_until: defaultdict[str, float] = defaultdict(float)
        self.process = process
        self.ended = asyncio.Event()

    async def send(self, request: Request) -> Response:
        """Carry a request and its answer, unless the process ends meanwhile."""
        await self._travel()
        crash = self._crash_at(request)
        if crash is not None and not crash.after:
            await self._end()
        response = await self._server.handle(
            Request(request.method, request.path, request.query, request.headers, request.body, self._user)
        )
        if crash is not None:
            await self._end()
        if response.stream is None:
            await self._travel()
            return response
        return Response(response.status, response.body, response.headers, self._watch(request.path, response.stream))

    async def close(self) -> None:
        """Nothing is held open."""

    def _crash_at(self, request: Request) -> Crash | None:
        """Count a write; the crash, if it happens at this one."""
        network = self._network
        if not network.armed or not is_write(request):
            return None
        network.writes.append(f"{self.process}: {request.method} {request.path}")
        if network.crash is not None and network.crash.containing in request.body:
            network.matched_writes += 1
            if network.matched_writes == network.crash.number:
                network.crashed_at = network.writes[-1]
                return network.crash
        if self._happens("crashed", network.storm.crash):
            return Crash(len(network.writes), after=network.chance.random() < 0.5)
        return None

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
            storm = self._network.storm
            if self._happens("broken", storm.broken):
                raise ConnectionLost("connection reset")
            if self._happens("expired", storm.expired):
                yield _EXPIRED
                return
            yield chunk

    async def _delay(self, path: str) -> None:
        """Wait while events of this kind, or of this whole process, are delayed; start such a delay at random."""
        storm, now = self._network.storm, asyncio.get_running_loop().time()
        for scope, rate in ((path, storm.delay_kind), ("", storm.delay_process)):
            if self._happens("delayed", rate):
                self._delayed_until[scope] = now + self._network.chance.random() * storm.max_delay
        await asyncio.sleep(max(self._delayed_until[path], self._delayed_until[""]) - now)

    def _happens(self, fault: str, rate: float) -> bool:
        if not rate or not self._network.armed or self._network.chance.random() >= rate:
            return False
        self._network.fault_counts[fault] += 1
        return True
