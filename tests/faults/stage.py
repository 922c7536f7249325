"""A whole installation in virtual time, services and operator, behind a bad wire and with processes that end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from spinney import initc
from spinney.api.kai import Config, SchedulingShard
from spinney.app.components import load
from spinney.app.installation import cluster_objects, install, install_crds, platform_objects
from spinney.embedded.cluster import Cluster
from spinney.embedded.nodes.profile import Profile
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.transport import User
from spinney.kube.manifests import manifests
from spinney.sim.loop import clock
from tests.e2e.installation import NAMESPACE, Installed, account, operated, platform, ready
from tests.faults.server import RoughServer

_OPERATOR = User("operator", ("system:masters", "system:authenticated"))
# How long a process stays away.
_AWAY_SECONDS = 3.0

Life = Callable[[], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def rough(
    nodes: Profile, *, seed: int, lag: float, losses: float = 0.0, restarts: int = 0
) -> AsyncIterator[Installed]:
    """All of ours, ready. From then on answers get lost, and each process ends so many times and comes back."""
    chance = Chance(5)
    server = RoughServer(clock(), chance, seed=seed, lag=lag)
    programs = {"spinney initc": initc.program}
    async with Cluster(nodes=nodes, clock=clock(), chance=chance, server=server, programs=programs) as cluster:
        held = await installed(cluster.client())
        operator = partial(operated, cluster.client(_OPERATOR), cluster.clock)
        lives: list[Life] = [partial(_services, cluster, held), operator]
        tasks = []
        for number, life in enumerate(lives):
            up = asyncio.Event()
            tasks.append(asyncio.create_task(_live(life, up, Chance(seed + number), restarts)))
            await up.wait()
        server.losses = losses
        try:
            yield held
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def installed(client: Client) -> Installed:
    """What stands before any process of ours starts."""
    await install(client, cluster_objects())
    await install_crds(client)
    await install(client, platform_objects())
    held = Installed(client)
    await held.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for document in manifests(load("platform"), NAMESPACE):
        await held.apply(document)
    return held


async def _live(life: Life, up: asyncio.Event, chance: Chance, restarts: int) -> None:
    """Live as often as told, for a few seconds each, and then for good."""
    for _ in range(restarts):
        async with life():
            up.set()
            await asyncio.sleep(chance.random() * _AWAY_SECONDS)
        await asyncio.sleep(chance.random() * _AWAY_SECONDS)
    async with life():
        up.set()
        await asyncio.Event().wait()


@asynccontextmanager
async def _services(cluster: Cluster, held: Installed) -> AsyncIterator[None]:
    async with platform(lambda *of: cluster.client(account(*of)), cluster.clock) as launcher:
        cluster.server.admission.resolve = launcher.resolve
        for kind in (Config, SchedulingShard):
            await ready(held, kind)
        yield
