"""The wire of one process, which ends where it is told to: before a write arrives, or before its answer does."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field

from spinney.kube.chance import Chance
from spinney.kube.client.transport import Handler, Request, Response, User
from spinney.kube.errors import ConnectionLost

_EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure",'
    b'"message":"too old resource version","reason":"Expired","code":410}}\n'
)


@dataclass(frozen=True)
class Accident:
    """The process that makes the write of this number ends, with the write still before it or just done."""

    number: int
    done: bool
    # Only writes with this in them count.
    holding: bytes = b""

    def __str__(self) -> str:
        return f"{'after' if self.done else 'before'} write {self.number}"

    def arrange(self, road: Road) -> None:
        """Let it happen on this road."""
        road.accident = self


@dataclass(frozen=True)
class Weather:
    """What befalls watches from a seed on, in shares of what they are told."""

    seed: int
    # Events of a kind, or all that a process watches, are held back for up to so many seconds.
    most_seconds: float = 0.0
    kind: float = 0.0
    process: float = 0.0
    # The connection breaks and the event is lost with it; the server no longer knows the version to go on from.
    broken: float = 0.0
    expired: float = 0.0
    # A process ends at one write in so many.
    crashes: float = 0.0

    def __str__(self) -> str:
        told = {name: value for name, value in asdict(self).items() if value}
        return " ".join(f"{name} {value}" for name, value in told.items())

    def arrange(self, road: Road) -> None:
        """Let it begin on this road."""
        road.chance = Chance(self.seed)
        road.weather = self


@dataclass
class Road:
    """What all wires share: how slow they are, what is to happen, and what has been written so far."""

    chance: Chance
    lag: float
    accident: Accident | None = None
    weather: Weather = Weather(0)
    # Since when nothing was asked of the server but reads, Leases and what nodes say of themselves.
    last_write: float = 0.0
    writes: list[str] = field(default_factory=list)
    counting: bool = False
    counted: int = 0
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=12))
    # What the accident hit, and how often anything else went wrong.
    struck: str = ""
    happened: Counter[str] = field(default_factory=Counter)


def is_write(request: Request) -> bool:
    """Whether a request means to change something that users look at."""
    if request.method == "GET" or ("dryRun", "All") in request.query:
        return False
    if request.path.startswith(("/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/")):
        return False
    return "/leases" not in request.path and not request.path.startswith("/api/v1/nodes/")


class Wire:
    """The transport of one life of one process. Once that has ended, what it still sends goes nowhere."""

    def __init__(self, server: Handler, user: User, who: str, road: Road) -> None:
        self._server = server
        self._user = user
        self._road = road
        self._held: Counter[str] = Counter()
        self.who = who
        self.ended = asyncio.Event()

    async def send(self, request: Request) -> Response:
        """Carry a request and its answer, unless the process ends meanwhile."""
        await self._pass()
        accident = self._reach(request)
        if accident is not None and not accident.done:
            await self._end()
        response = await self._server.handle(
            Request(request.method, request.path, request.query, request.headers, request.body, self._user)
        )
        if accident is not None:
            await self._end()
        if response.stream is None:
            await self._pass()
            return response
        return Response(response.status, response.body, response.headers, self._told(request.path, response.stream))

    async def close(self) -> None:
        """Nothing is held open."""

    def _reach(self, request: Request) -> Accident | None:
        """Count a write; the accident, if this is where it happens."""
        road = self._road
        if not road.counting or not is_write(request):
            return None
        road.writes.append(f"{self.who}: {request.method} {request.path}")
        if road.accident is not None and road.accident.holding in request.body:
            road.counted += 1
            if road.counted == road.accident.number:
                road.struck = road.writes[-1]
                return road.accident
        if self._happens("crashed", road.weather.crashes):
            return Accident(len(road.writes), done=road.chance.random() < 0.5)
        return None

    async def _end(self) -> None:
        self.ended.set()
        await asyncio.Event().wait()

    async def _pass(self) -> None:
        """One way over the wire."""
        await asyncio.sleep(self._road.chance.random() * self._road.lag)
        if self.ended.is_set():
            await asyncio.Event().wait()

    async def _told(self, path: str, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """What a watch is told, late, and not all of it."""
        async for chunk in events:
            await self._pass()
            await self._hold(path)
            if self._happens("broken", self._road.weather.broken):
                raise ConnectionLost("connection reset")
            if self._happens("expired", self._road.weather.expired):
                yield _EXPIRED
                return
            yield chunk

    async def _hold(self, path: str) -> None:
        """Wait while events of this kind, or all of this process, are held back; now and then begin to."""
        weather, now = self._road.weather, asyncio.get_running_loop().time()
        for what, share in ((path, weather.kind), ("", weather.process)):
            if self._happens("held", share):
                self._held[what] = now + self._road.chance.random() * weather.most_seconds
        await asyncio.sleep(max(self._held[path], self._held[""]) - now)

    def _happens(self, what: str, share: float) -> bool:
        if not share or not self._road.counting or self._road.chance.random() >= share:
            return False
        self._road.happened[what] += 1
        return True
