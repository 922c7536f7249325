"""An installation behind an API server that answers late and loses answers, with components that restart at random."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from spinney import initc
from spinney.embedded.apiserver.access.credentials import account_user
from spinney.embedded.apiserver.server import ApiServer
from spinney.embedded.cluster import ADMIN, Cluster
from spinney.embedded.nodes.profile import Profile
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.transport import Request, Response, User
from spinney.kube.clock import Clock
from spinney.kube.errors import ConnectionLost
from spinney.sim.installation import grove_operator, install_base, platform, wait_ready
from spinney.sim.loop import clock

_OPERATOR = User("operator", ("system:masters", "system:authenticated"))
# The longest time between two restarts, and the longest downtime.
_RESTART_SECONDS = 3.0


class LossyServer(ApiServer):
    """An API server that takes up to `lag` seconds each way, drawn from a seed, and loses a share of all messages.

    Components meet what virtual time otherwise hides. Objects change while they write, an answer arrives after the
    event that reports it, and one cache is ahead of another. A loss breaks the connection. Leases are spared, since
    leadership is not what is tested; so is the administrator, who observes.
    """

    def __init__(self, clock: Clock, chance: Chance, *, seed: int, lag: float) -> None:
        super().__init__(clock, chance)
        self._chance = Chance(seed)
        self._lag = lag
        self.losses = 0.0

    async def handle(self, request: Request) -> Response:
        """Answer late, or never."""
        if "/leases" in request.path or request.user == ADMIN:
            return await super().handle(request)
        await self._travel()
        response = await super().handle(request)
        if response.stream is None:
            await self._travel()
            return response
        return Response(response.status, response.body, response.headers, self._late(response.stream))

    async def _late(self, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in events:
            await self._travel()
            yield chunk

    async def _travel(self) -> None:
        await asyncio.sleep(self._chance.random() * self._lag)
        if self.losses and self._chance.random() < self.losses:
            raise ConnectionLost("connection reset")


@asynccontextmanager
async def lossy_installation(
    nodes: Profile, *, seed: int, lag: float, losses: float = 0.0, restarts: int = 0
) -> AsyncIterator[Client]:
    """All components, ready, and an administrator's client; then answers are lost, and each process restarts."""
    chance = Chance(5)
    server = LossyServer(clock(), chance, seed=seed, lag=lag)
    programs = {"spinney initc": initc.program}
    async with Cluster(nodes=nodes, clock=clock(), chance=chance, server=server, programs=programs) as cluster:
        await install_base(cluster.client())
        operator = partial(grove_operator, cluster.client(_OPERATOR), cluster.clock)
        tasks = []
        for number, process in enumerate((partial(_services, cluster), operator)):
            started = asyncio.Event()
            tasks.append(asyncio.create_task(_restarted(process, started, Chance(seed + number), restarts)))
            await started.wait()
        server.losses = losses
        try:
            yield cluster.client()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _restarted(
    process: Callable[[], AbstractAsyncContextManager[None]], started: asyncio.Event, chance: Chance, restarts: int
) -> None:
    """Run a process for a few seconds at a time, `restarts` times, and then without an end."""
    for _ in range(restarts):
        async with process():
            started.set()
            await asyncio.sleep(chance.random() * _RESTART_SECONDS)
        await asyncio.sleep(chance.random() * _RESTART_SECONDS)
    async with process():
        started.set()
        await asyncio.Event().wait()


@asynccontextmanager
async def _services(cluster: Cluster) -> AsyncIterator[None]:
    async with platform(lambda *account: cluster.client(account_user(*account)), cluster.clock) as launcher:
        cluster.server.admission.resolve = launcher.resolve
        await wait_ready(cluster.client())
        yield
