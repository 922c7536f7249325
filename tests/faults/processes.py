"""A whole installation in virtual time, every component a process of its own that can end and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from spinney import initc
from spinney.api.kai import Config, SchedulingShard
from spinney.api.meta import Json
from spinney.app.components import load
from spinney.app.laptop import with_stand_in
from spinney.backends.component import COMPONENT as BACKENDS
from spinney.backends.component import BackendsConfig
from spinney.embedded.apiserver.server import ApiServer
from spinney.embedded.cluster import Cluster
from spinney.embedded.nodes.profile import Profile
from spinney.grove.component import COMPONENT as GROVE
from spinney.kube.caches.cache import Caches
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.flow import InProcessFlow
from spinney.kube.client.transport import Request, Response, User
from spinney.kube.controllers.controller import run_controllers
from spinney.kube.controllers.host import Host
from spinney.kube.runtime import Component, Runtime, Webhook
from spinney.services.platform.controller import Platform
from spinney.services.platform.launcher import Launcher
from spinney.services.platform.processes import Process
from spinney.services.platform.settings import PlatformSettings
from spinney.sim.loop import clock
from tests.e2e.installation import NAMESPACE, Installed, account, ready
from tests.faults.stage import installed
from tests.faults.wire import Road, Wire, is_write

_MASTERS = ("system:masters", "system:authenticated")
# How long a process stays away.
_AWAY_SECONDS = 1.0
# What begins after so long without a write is another day.
QUIET_SECONDS = 60.0


class Watched(ApiServer):
    """An API server that notes when it was last asked for a change, by anybody but the one who looks on."""

    road: Road

    async def handle(self, request: Request) -> Response:
        """As ever."""
        if is_write(request):
            self.road.last_write = asyncio.get_running_loop().time()
            self.road.recent.append(f"{request.user and request.user.name} {request.method} {request.path}")
        return await super().handle(request)


@dataclass
class World:
    """What a scenario holds: the user's words, the road of all wires, the server's store."""

    held: Installed
    road: Road
    cluster: Cluster

    async def settled(self) -> None:
        """Let time pass until nobody has wanted to change anything for a while."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while (rest := max(begun, self.road.last_write) + QUIET_SECONDS - loop.time()) > 0:
            if loop.time() - begun > 3600:
                raise AssertionError(f"no rest after an hour: {list(self.road.recent)}")
            await asyncio.sleep(rest)


class Crashed(Exception):
    """A process ended in the middle."""


@asynccontextmanager
async def installation(
    nodes: Profile, *, stand_in: bool = False, seed: int = 1, lag: float = 0.01
) -> AsyncIterator[World]:
    """All of ours, ready; the scheduler stands in for kube-scheduler where told."""
    chance = Chance(5)
    road = Road(Chance(seed), lag)
    server = Watched(clock(), chance)
    server.road = road
    programs = {"spinney initc": initc.program}
    async with Cluster(nodes=nodes, clock=clock(), chance=chance, server=server, programs=programs) as cluster:
        held = await installed(cluster.client())
        processes = _Processes(cluster, road, with_stand_in if stand_in else lambda process: process)
        try:
            await processes.start(held)
            yield World(held, road, cluster)
        finally:
            processes.stop()


class _Processes:
    """The operator, the backends and the platform, each on its own wire, and the services that the platform starts."""

    def __init__(self, cluster: Cluster, road: Road, adjust: Callable[[Process], Process]) -> None:
        self._cluster = cluster
        self._road = road
        self._adjust = adjust
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, held: Installed) -> None:
        """Return once all of them serve."""
        launcher = Launcher(self._load, self._service, Caches, self._cluster.clock, adjust=self._adjust)
        self._cluster.server.admission.resolve = launcher.resolve
        await self._live(account(NAMESPACE, "spinney-platform"), _platform(launcher), NAMESPACE)
        for kind in (Config, SchedulingShard):
            await ready(held, kind)
        await self._live(User("grove", _MASTERS), (GROVE, GROVE.settings() if GROVE.settings else None))
        for backend in ("kai", "default"):
            await self._live(User(f"backend-{backend}", _MASTERS), (BACKENDS, BackendsConfig(only=(backend,))))

    def stop(self) -> None:
        """End all of them at once."""
        for task in self._tasks:
            task.cancel()

    def _client(self, user: User) -> Client:
        wire = Wire(self._cluster.server, user, user.name.rpartition(":")[2], self._road)
        return Client(wire, self._cluster.chance, flow=InProcessFlow())

    def _service(self, namespace: str, name: str) -> Client:
        return self._client(account(namespace, name))

    async def _live(self, user: User, component: tuple[Component, Any], namespace: str = "default") -> None:
        """Run a component for good, however often it ends; return once it is ready for the first time."""
        up = asyncio.Event()

        async def lives() -> None:
            while True:
                client = self._client(user)
                host = Host(client, self._cluster.clock, [component], namespace=namespace)
                waiting = asyncio.create_task(_until_ready(host, up))
                try:
                    await _until_ended(host.run(), client)
                except Crashed:
                    await asyncio.sleep(_AWAY_SECONDS)
                finally:
                    waiting.cancel()

        self._tasks.append(asyncio.create_task(lives(), name=user.name))
        waiting = asyncio.create_task(up.wait())
        await asyncio.wait({waiting, self._tasks[-1]}, return_when=asyncio.FIRST_COMPLETED)
        if self._tasks[-1].done():
            self._tasks[-1].result()

    def _load(self, name: str) -> Component:
        """A component whose life ends with its wire, and whose reviews do."""
        component = load(name)

        async def run(runtime: Runtime, settings: Any) -> None:
            await _until_ended(component.run(runtime, settings), runtime.client)

        return replace(component, run=run, webhooks=tuple(_mortal(webhook) for webhook in component.webhooks))


async def _until_ready(host: Host, up: asyncio.Event) -> None:
    await host.ready.wait()
    up.set()


async def _until_ended(life: Awaitable[None], client: Client) -> None:
    """Live until the wire ends; what is still under way then goes nowhere."""
    wire = client.transport
    assert isinstance(wire, Wire)
    living = asyncio.ensure_future(life)
    ended = asyncio.create_task(wire.ended.wait())
    try:
        await asyncio.wait({living, ended}, return_when=asyncio.FIRST_COMPLETED)
        if living.done():
            living.result()
            return
        raise Crashed(f"{wire.who} ended")
    finally:
        ended.cancel()
        living.cancel()


def _mortal(webhook: Webhook) -> Webhook:
    def review(runtime: Runtime) -> Callable[[Json], Awaitable[Json]]:
        answer = webhook.review(runtime)
        wire = runtime.client.transport
        assert isinstance(wire, Wire)

        async def answered(request: Json) -> Json:
            if wire.ended.is_set():
                raise ConnectionRefusedError(f"{wire.who} is away")
            return await answer(request)

        return answered

    return replace(webhook, review=review)


def _platform(launcher: Launcher) -> tuple[Component, None]:
    """The platform operator, whose end is not that of the services it started: as with Deployments."""

    async def run(runtime: Runtime, settings: PlatformSettings | None = None) -> None:
        platform = Platform(runtime, settings or PlatformSettings(), load, launcher)
        launcher.changed = platform.look_again
        await run_controllers(runtime, *platform.controllers)

    return Component("platform", "Runs the services as Config and SchedulingShards say, in this process.", run), None
