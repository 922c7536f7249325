"""A whole installation on a cluster: every component under its own account, with the rights that it declares."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from spinney.api.conditions import is_true
from spinney.api.core import Namespace
from spinney.api.kai import Config, SchedulingShard
from spinney.app.components import load
from spinney.app.installation import cluster_objects, install, install_crds, platform_objects
from spinney.backends.component import COMPONENT as BACKENDS
from spinney.backends.component import BackendsConfig
from spinney.grove.component import COMPONENT as GROVE
from spinney.kube.caches.cache import Caches
from spinney.kube.client.client import Client
from spinney.kube.client.discovery import Discovery
from spinney.kube.clock import Clock
from spinney.kube.controllers.host import Host
from spinney.kube.manifests import manifests
from spinney.kube.runtime import Component
from spinney.services.platform.component import component as platform_component
from spinney.services.platform.component import in_process
from spinney.services.platform.launcher import Launcher
from spinney.services.platform.processes import Process
from spinney.services.platform.settings import PlatformSettings
from spinney.services.platform.shard_config import NAMESPACE

PLATFORM_ACCOUNT = "spinney-platform"
# Far above what anything takes in real time on a busy machine.
READY_SECONDS = 180.0


async def install_base(client: Client, services: Callable[[str], Component] = load) -> None:
    """Create what must exist before any component starts: kinds, classes, queues and the platform's rights.

    The platform may hand on the rights of `services`, which finds components by name.
    """
    await install(client, cluster_objects())
    await install_crds(client)
    await install(client, platform_objects())
    discovery = Discovery(client)
    objects = [(Namespace.resource, {"metadata": {"name": NAMESPACE}})]
    for document in manifests(platform_component(services), NAMESPACE):
        resource = await discovery.resource(document["apiVersion"], document["kind"])
        assert resource is not None, document["kind"]
        objects.append((resource, document))
    await install(client, objects)


@asynccontextmanager
async def platform(
    client_of: Callable[[str, str], Client],
    clock: Clock,
    settings: PlatformSettings | None = None,
    adjust: Callable[[Process], Process] = lambda process: process,
    services: Callable[[str], Component] = load,
) -> AsyncIterator[Launcher]:
    """Run the platform operator and the services that it starts, each with its own account and caches."""
    launcher = Launcher(load, client_of, Caches, clock, adjust=adjust)
    components = [(in_process(services, launcher), settings)]
    host = Host(client_of(NAMESPACE, PLATFORM_ACCOUNT), clock, components, namespace=NAMESPACE)
    async with _running(host):
        yield launcher


@asynccontextmanager
async def grove_operator(client: Client, clock: Clock) -> AsyncIterator[None]:
    """Run the Grove operator with KAI's backend until it is left."""
    config = GROVE.settings() if GROVE.settings else None
    host = Host(client, clock, [(GROVE, config), (BACKENDS, BackendsConfig(only=("kai",)))])
    async with _running(host):
        await host.ready.wait()
        yield


async def wait_ready(client: Client) -> None:
    """Wait until the Config and every SchedulingShard are Ready."""
    for kind in (Config, SchedulingShard):
        await _wait_ready(client, kind)


async def _wait_ready(client: Client, kind: type[Config] | type[SchedulingShard]) -> None:
    for _ in range(int(READY_SECONDS * 4)):
        items = (await client.list(kind)).items
        if items and all(is_true(item.status.conditions, "Ready") for item in items):
            return
        await asyncio.sleep(0.25)
    messages = [condition.message for item in items for condition in item.status.conditions]
    raise AssertionError(f"{kind.__name__} is not Ready after {READY_SECONDS:g} s: {'; '.join(messages)}")


@asynccontextmanager
async def _running(host: Host) -> AsyncIterator[None]:
    task = asyncio.create_task(host.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
