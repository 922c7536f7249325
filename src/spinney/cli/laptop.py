"""A cluster with all components in this process: what `spinney up` and `spinney demo` run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spinney import initc
from spinney.api.meta import Json, convert
from spinney.cli.components import COMPONENTS, load
from spinney.cli.installation import (
    SYSTEM_NAMESPACE,
    apply,
    cluster_objects,
    install,
    install_crds,
    platform_objects,
    webhook_resource,
)
from spinney.embedded.cluster import Cluster
from spinney.embedded.controllers import computedomains
from spinney.embedded.credentials import Authority, write_kubeconfig
from spinney.embedded.listener import Listener
from spinney.embedded.nodes.kubelet import Program
from spinney.embedded.nodes.profile import Profile
from spinney.embedded.remote import over_https
from spinney.kube.client import Client
from spinney.kube.clock import SystemClock
from spinney.kube.host import Host
from spinney.kube.manifests import account_name, webhook_configurations
from spinney.kube.runtime import Component
from spinney.kube.webhooks import Reviewer

READY_SECONDS = 60.0
# What init containers really run.
_PROGRAMS: dict[str, Program] = {"spinney initc": initc.program}


@dataclass(frozen=True)
class Options:
    """What a user can choose."""

    nodes: Profile = field(default_factory=Profile)
    # Without a kubeconfig nothing listens: the cluster is for this process only.
    kubeconfig: Path | None = None
    port: int = 0
    bare: bool = False
    mnnvl: bool = False
    authorizer: bool = False


class NotReady(RuntimeError):
    """Components that did not start in time."""


@dataclass
class Laptop:
    """A cluster that runs, and the components beside it."""

    cluster: Cluster
    url: str
    components: list[str]
    life: asyncio.Task[None] | None = None

    @property
    def client(self) -> Client:
        """An administrator's client."""
        return self.cluster.client()

    async def failed(self) -> None:
        """Return never, unless something that should run for ever ends: then raise its error."""
        lives = [asyncio.create_task(self.cluster.failed()), *([self.life] if self.life else ())]
        done, _ = await asyncio.wait(lives, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


@asynccontextmanager
async def laptop(options: Options) -> AsyncIterator[Laptop]:
    """Start everything; inside the block it is ready."""
    clock = SystemClock()
    authority = Authority(clock.now())
    made = Cluster(nodes=options.nodes, clock=clock, programs=_PROGRAMS, ca_certificate=authority.bundle.trusted)
    async with made as cluster, _listening(cluster, authority, options) as url:
        client = cluster.client()
        await install(client, cluster_objects())
        if options.bare:
            yield Laptop(cluster, url, [])
            return
        await install_crds(client)
        await install(client, platform_objects())
        await cluster.start_controller(computedomains.controller)
        async with _components(cluster, options) as (names, life):
            yield Laptop(cluster, url, names, life)


@asynccontextmanager
async def _listening(cluster: Cluster, authority: Authority, options: Options) -> AsyncIterator[str]:
    if options.kubeconfig is None:
        yield ""
        return
    listener = Listener(cluster.server, authority)
    await listener.start(options.port)
    try:
        write_kubeconfig(options.kubeconfig, listener.url, authority)
        yield listener.url
    finally:
        await listener.stop()


@asynccontextmanager
async def _components(cluster: Cluster, options: Options) -> AsyncIterator[tuple[list[str], asyncio.Task[None]]]:
    loaded = [load(name) for name in COMPONENTS]
    configured = [(component, _configuration(component, options)) for component in loaded]
    host = Host(cluster.client(), cluster.clock, configured, namespace=SYSTEM_NAMESPACE)
    life = asyncio.create_task(host.run(), name="components")
    try:
        await _ready(host, life)
        await _register_webhooks(cluster, host, loaded)
        yield [component.name for component in loaded], life
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


async def _register_webhooks(cluster: Cluster, host: Host, components: list[Component]) -> None:
    """Let the API server ask our webhooks by a direct call; those of others are asked over HTTPS."""
    ours = {account_name(component) for component in components}
    reviewers = host.reviewers()

    def resolve(client: Json) -> Reviewer:
        service = client.get("service") or {}
        if service.get("namespace") == SYSTEM_NAMESPACE and service.get("name") in ours:
            return reviewers[service["path"]]
        return over_https(client)

    cluster.server.admission.resolve = resolve
    for component in components:
        for wanted in webhook_configurations(component, SYSTEM_NAMESPACE):
            await apply(cluster.client(), webhook_resource(wanted["kind"]), wanted)


async def _ready(host: Host, life: asyncio.Task[None]) -> None:
    ready = asyncio.create_task(host.ready.wait())
    await asyncio.wait([ready, life], timeout=READY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    if life.done():
        ready.cancel()
        life.result()
    if not ready.done():
        ready.cancel()
        raise NotReady(f"not ready after {READY_SECONDS:g} s: {', '.join(host.not_ready)}")


def _configuration(component: Component, options: Options) -> Any:
    """Everything on, as on a cluster that has it all; what changes what users may do is chosen by them."""
    chosen: dict[str, Json] = {
        "grove": {"network": {"autoMNNVLEnabled": options.mnnvl}, "authorizer": {"enabled": options.authorizer}},
        # No kube-scheduler runs here, so ours serves its pods as well.
        "scheduler": {"standIn": True},
        "admission": {"gpuSharing": True},
    }
    if component.settings is None:
        return None
    return convert(component.settings, chosen.get(component.name, {}))
