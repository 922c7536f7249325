"""An installation in virtual time in which every component is a process of its own that can crash and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from spinney import initc
from spinney.api.meta import Json
from spinney.app.components import load
from spinney.app.in_process import load_standing_in, with_stand_in
from spinney.backends.component import COMPONENT as BACKENDS
from spinney.backends.component import BackendsConfig
from spinney.embedded.apiserver.access.credentials import account_user
from spinney.embedded.apiserver.server import ApiServer
from spinney.embedded.cluster import Cluster
from spinney.embedded.nodes.profile import Profile
from spinney.grove.component import COMPONENT as GROVE
from spinney.kube.admission.review import Reviewer
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
from spinney.services.platform.shard_config import NAMESPACE
from spinney.sim.faults.kinds import LATE_KUBELET
from spinney.sim.faults.network import Connection, Network, ProcessClock, is_write
from spinney.sim.gang_stand_in import STAND_INS, GangStandIn
from spinney.sim.installation import PLATFORM_ACCOUNT, install_base, wait_ready
from spinney.sim.loop import clock

_MASTERS = ("system:masters", "system:authenticated")
# How long a process is down after a crash.
_DOWN_SECONDS = 1.0
# Rest begins after so long without a write.
QUIET_SECONDS = 60.0
_SECOND_LEADER_SECONDS = 5.0
_CA = "the certificate of the cluster"


class _ObservedServer(ApiServer):
    """An API server that records the writes of all clients, and lets kubelets report late."""

    network: Network

    async def handle(self, request: Request) -> Response:
        """Record a write, and answer as usual."""
        if not is_write(request):
            return await super().handle(request)
        network = self.network
        if ("fieldManager", "kubelet") in request.query and network.happens(LATE_KUBELET, network.storm.slow_kubelet):
            network.tell("FAULT", f"the kubelet is slow to send {request.path}")
            await asyncio.sleep(network.chance.random() * network.storm.max_delay)
        network.last_write = asyncio.get_running_loop().time()
        user = (request.user.name if request.user else "").rpartition(":")[2]
        network.recent_writes.append(f"{user} {request.method} {request.path}")
        if request.path.endswith("/eviction") and "scheduler" in user:
            network.evicting(*request.path.removesuffix("/eviction").split("/")[-3::2])
        response = await super().handle(request)
        if "/events" not in request.path:
            network.tell(user, f"{request.method} {request.path} {response.status}")
        return response


@dataclass
class World:
    """What a scenario works with: an administrator's client, the network, the cluster and the processes."""

    client: Client
    network: Network
    cluster: Cluster
    processes: Processes

    async def settled(self) -> None:
        """Wait until there was no write for a while; longer if clocks disagree, because delays then take longer."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        while (rest := max(start, self.network.last_write) + self._quiet_seconds() - loop.time()) > 0:
            if loop.time() - start > 3600:
                raise AssertionError(f"no rest after an hour: {list(self.network.recent_writes)}")
            await asyncio.sleep(rest)

    def _quiet_seconds(self) -> float:
        return QUIET_SECONDS + self.network.clocks_disagree


class Crashed(Exception):
    """A process crashed."""


@asynccontextmanager
async def installation(
    nodes: Profile,
    *,
    stand_in: bool = False,
    backends: Sequence[str] = ("kai", "default"),
    lag: float = 0.01,
) -> AsyncIterator[World]:
    """All components, ready; with `stand_in` our scheduler serves kube-scheduler's pods as well."""
    chance = Chance(5)
    network = Network(Chance(1), lag)
    server = _ObservedServer(clock(), chance)
    server.network = network
    programs = {"spinney initc": initc.program}
    # No certificate has to be made, which takes real time and real chance.
    made = Cluster(nodes=nodes, clock=clock(), chance=chance, server=server, programs=programs, ca_certificate=_CA)
    async with made as cluster:
        client = cluster.client()
        services = load_standing_in if stand_in else load
        await install_base(client, services)
        processes = Processes(cluster, network, services, with_stand_in if stand_in else lambda process: process)
        try:
            await processes.start(client, backends)
            yield World(client, network, cluster, processes)
        finally:
            processes.stop()


class Processes:
    """The operator, the backends and the platform, each with its own connection, and the platform's services."""

    def __init__(
        self,
        cluster: Cluster,
        network: Network,
        services: Callable[[str], Component],
        adjust: Callable[[Process], Process],
    ) -> None:
        self._cluster = cluster
        self._network = network
        self._services = services
        self._adjust = adjust
        self._tasks: set[asyncio.Task[None]] = set()
        # By process, what runs a second copy of it, with a connection of its own.
        self._copies: dict[str, Callable[[], Awaitable[None]]] = {}

    async def start(self, admin: Client, backends: Sequence[str]) -> None:
        """Start all processes and wait until they are ready."""
        launcher = Launcher(self._load, self._service_client, Caches, self._cluster.clock, adjust=self._adjust)
        self._cluster.server.admission.resolve = partial(self._resolve, launcher)
        await self._start(account_user(NAMESPACE, PLATFORM_ACCOUNT), _platform(launcher, self._services), NAMESPACE)
        await wait_ready(admin)
        await self._start(User("grove", _MASTERS), (GROVE, GROVE.settings() if GROVE.settings else None))
        for backend in backends:
            await self._start(User(f"backend-{backend}", _MASTERS), (BACKENDS, BackendsConfig(only=(backend,))))
        for scheduler in STAND_INS:
            if scheduler in backends:
                stand_in = GangStandIn(self._cluster.client(User(scheduler, _MASTERS)), STAND_INS[scheduler])
                self._tasks.add(asyncio.create_task(stand_in.run(), name=scheduler))

    def stop(self) -> None:
        """End all processes."""
        for task in self._tasks:
            task.cancel()

    def second_leader(self, process: str) -> None:
        """Let a second copy of a process act beside it for a while; never a third one."""
        name = f"second {process}"
        if process not in self._copies or any(task.get_name() == name for task in self._tasks):
            return
        self._network.tell("FAULT", f"a second {process} acts as leader, too")
        task = asyncio.create_task(self._for_a_while(self._copies[process]), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _for_a_while(self, life: Callable[[], Awaitable[None]]) -> None:
        with suppress(TimeoutError, Crashed):
            async with asyncio.timeout(_SECOND_LEADER_SECONDS):
                await life()

    def _resolve(self, launcher: Launcher, client: Json) -> Reviewer:
        if asyncio.get_running_loop().time() < self._network.webhooks_down_until:
            raise ConnectionRefusedError("webhooks are down")
        return launcher.resolve(client)

    def _client(self, user: User) -> Client:
        connection = Connection(self._cluster.server, user, user.name.rpartition(":")[2], self._network)
        return Client(connection, self._cluster.chance, flow=InProcessFlow())

    def _service_client(self, namespace: str, name: str) -> Client:
        return self._client(account_user(namespace, name))

    def _host(self, user: User, component: tuple[Component, Any], namespace: str) -> Host:
        return Host(self._client(user), self._clock(user.name), [component], namespace=namespace)

    def _clock(self, process: str) -> ProcessClock:
        return ProcessClock(self._cluster.clock, self._network, process.rpartition(":")[2])

    async def _start(self, user: User, component: tuple[Component, Any], namespace: str = "default") -> None:
        """Run a component, again after every crash; returns once it is ready for the first time."""
        ready = asyncio.Event()

        async def live() -> None:
            host = self._host(user, component, namespace)
            waiting = asyncio.create_task(_set_when_ready(host, ready))
            try:
                await _until_crash(host.run(), host.client)
            finally:
                waiting.cancel()

        async def run() -> None:
            while True:
                try:
                    await live()
                except Crashed:
                    await asyncio.sleep(_DOWN_SECONDS)

        self._copies[user.name.rpartition(":")[2]] = live
        task = asyncio.create_task(run(), name=user.name)
        self._tasks.add(task)
        await asyncio.wait({asyncio.create_task(ready.wait()), task}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()

    def _load(self, name: str) -> Component:
        """A component that ends, and whose webhooks end, with its connection."""
        component = load(name)

        async def live(runtime: Runtime, settings: Any) -> None:
            process = _connection(runtime.client).process
            await _until_crash(component.run(replace(runtime, clock=self._clock(process)), settings), runtime.client)

        async def run(runtime: Runtime, settings: Any) -> None:
            connection = _connection(runtime.client)

            async def copy() -> None:
                client = self._client(connection.user)
                caches = Caches(client)
                own = replace(runtime, client=client.named(name), caches=caches, ready=lambda: None)
                async with asyncio.TaskGroup() as tasks:
                    feeding = tasks.create_task(caches.run())
                    await live(own, settings)
                    feeding.cancel()

            self._copies[connection.process] = copy
            await live(runtime, settings)

        return replace(component, run=run, webhooks=tuple(_with_crash(webhook) for webhook in component.webhooks))


async def _set_when_ready(host: Host, ready: asyncio.Event) -> None:
    await host.ready.wait()
    ready.set()


def _connection(client: Client) -> Connection:
    assert isinstance(client.transport, Connection)
    return client.transport


async def _until_crash(run: Awaitable[None], client: Client) -> None:
    """Run until the connection ends; raises `Crashed` then."""
    connection = _connection(client)
    running = asyncio.ensure_future(run)
    ended = asyncio.create_task(connection.ended.wait())
    try:
        await asyncio.wait({running, ended}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
            return
        raise Crashed(connection.process)
    finally:
        ended.cancel()
        running.cancel()


def _with_crash(webhook: Webhook) -> Webhook:
    """A webhook that refuses connections once its process has crashed."""

    def review(runtime: Runtime) -> Callable[[Json], Awaitable[Json]]:
        answer = webhook.review(runtime)
        connection = _connection(runtime.client)

        async def answer_or_refuse(request: Json) -> Json:
            if connection.ended.is_set():
                raise ConnectionRefusedError(f"{connection.process} is down")
            return await answer(request)

        return answer_or_refuse

    return replace(webhook, review=review)


def _platform(launcher: Launcher, services: Callable[[str], Component]) -> tuple[Component, None]:
    """The platform operator; its services survive its crash, as Deployments would."""

    async def run(runtime: Runtime, settings: PlatformSettings | None = None) -> None:
        platform = Platform(runtime, settings or PlatformSettings(), services, launcher)
        before = launcher.changed
        launcher.changed = platform.reconcile_all
        try:
            await run_controllers(runtime, *platform.controllers)
        finally:
            # A second copy has listened for a while; the next process after a crash listens already.
            if launcher.changed == platform.reconcile_all:
                launcher.changed = before

    return Component("platform", "Runs the services as Config and SchedulingShards say, in this process.", run), None
