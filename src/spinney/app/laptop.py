"""A cluster with all components in this process: what `spinney up` and `spinney demo` run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from spinney import initc
from spinney.api.admission import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from spinney.api.conditions import find
from spinney.api.kaiconfig import Config
from spinney.api.kaishard import SchedulingShard
from spinney.api.meta import Json, convert
from spinney.api.schedulerfile import SchedulerFile
from spinney.app.broken_backends import warn_of_broken_backends
from spinney.app.components import load, load_third_party, registered
from spinney.app.installation import (
    SYSTEM_NAMESPACE,
    apply,
    cluster_objects,
    install,
    install_crds,
    platform_objects,
)
from spinney.embedded.apiserver.access.credentials import Authority, account_user, write_kubeconfig
from spinney.embedded.apiserver.admission.remote_webhooks import over_https
from spinney.embedded.apiserver.admission.webhooks import Resolver
from spinney.embedded.apiserver.http.listener import Listener
from spinney.embedded.apiserver.persistence import DataFolder
from spinney.embedded.apiserver.server import ApiServer
from spinney.embedded.cluster import Cluster
from spinney.embedded.controllers.devices.compute_domains import ComputeDomains
from spinney.embedded.nodes.kubelet import Program
from spinney.embedded.nodes.profile import Profile
from spinney.kube.admission.review import Reviewer
from spinney.kube.caches.cache import Caches
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from spinney.kube.manifests import account_name, webhook_configurations, webhook_resource
from spinney.kube.runtime import Component
from spinney.services.platform.component import in_process
from spinney.services.platform.launcher import Launcher
from spinney.services.platform.processes import Process

READY_SECONDS = 60.0
# These run only inside reservation pods, and on nodes that have a kubelet.
_NOT_HERE = ("reservation", "numa-placement-exporter")
# What init containers really run.
_PROGRAMS: dict[str, Program] = {"spinney initc": initc.program}


@dataclass(frozen=True)
class Options:
    """What a user can choose."""

    nodes: Profile = field(default_factory=Profile)
    # Without a kubeconfig nothing listens: the cluster is for this process only.
    kubeconfig: Path | None = None
    port: int = 0
    # Without a folder the state is in memory.
    data_dir: Path | None = None
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
    clock, chance = SystemClock(), Chance()
    async with AsyncExitStack() as stack:
        server, authority = ApiServer(clock, chance), Authority(clock.now())
        if options.data_dir is not None:
            folder = DataFolder(options.data_dir)
            stack.push_async_callback(folder.close)
            server, authority = folder.server(clock, chance), folder.authority(clock)
        trusted = authority.bundle.trusted
        made = Cluster(
            nodes=options.nodes, clock=clock, chance=chance, server=server, programs=_PROGRAMS, ca_certificate=trusted
        )
        yield await stack.enter_async_context(_running(made, authority, options))


@asynccontextmanager
async def _running(made: Cluster, authority: Authority, options: Options) -> AsyncIterator[Laptop]:
    async with made as cluster, _listening(cluster, authority, options) as url:
        client = cluster.client()
        await _forget_webhooks(client)
        await install(client, cluster_objects())
        if options.bare:
            yield Laptop(cluster, url, [])
            return
        await install_crds(client)
        await install(client, platform_objects())
        await cluster.start_controller(ComputeDomains)
        async with _components(cluster, options) as (names, life):
            yield Laptop(cluster, url, names, life)


async def _forget_webhooks(client: Client) -> None:
    """Webhooks by service are our own, from the life before this one: they register again once they answer."""
    mutating = (await client.list(MutatingWebhookConfiguration)).items
    validating = (await client.list(ValidatingWebhookConfiguration)).items
    both: list[MutatingWebhookConfiguration | ValidatingWebhookConfiguration] = [*mutating, *validating]
    for found in both:
        if any(hook.client_config.service for hook in found.webhooks):
            await client.delete(type(found), found.name)


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
    """The operator and its backends, and whatever Config and SchedulingShards ask for."""
    # The cluster's own controllers watch the same kinds: one copy of them serves all.
    caches = cluster.caches
    launcher = Launcher(
        load,
        lambda namespace, account: cluster.client(account_user(namespace, account)),
        lambda _: caches,
        cluster.clock,
        adjust=with_stand_in,
    )
    warn_of_broken_backends(registered())
    loaded = [load("grove"), load("backends"), *load_third_party()]
    configured = [(component, _configuration(component, options)) for component in loaded]
    configured.append((in_process(load, launcher), None))
    host = Host(cluster.client(), cluster.clock, configured, namespace=SYSTEM_NAMESPACE, caches=caches)
    cluster.server.admission.resolve = _resolver(host, loaded, launcher)
    life = asyncio.create_task(host.run(), name="components")
    try:
        await _ready(host, life)
        await _register_webhooks(cluster, loaded)
        await _installed(caches, life)
        yield [name for name in registered() if name not in _NOT_HERE], life
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


def with_stand_in(process: Process) -> Process:
    """No kube-scheduler runs here, so the scheduler of the nodes outside of any pool serves its pods as well."""
    file = process.settings
    if not isinstance(file, SchedulerFile) or file.partition_label_value:
        return process
    return replace(process, settings=msgspec.structs.replace(file, stand_in=True))


async def _installed(caches: Caches, life: asyncio.Task[None]) -> None:
    """Wait until the services that are asked for serve."""
    configs, shards = caches.of(Config), caches.of(SchedulingShard)
    changed = asyncio.Event()
    for cache in (configs, shards):
        cache.on_change(lambda _: changed.set())
    try:
        async with asyncio.timeout(READY_SECONDS):
            while not life.done() and (late := _not_ready([*configs, *shards])):
                changed.clear()
                await changed.wait()
    except TimeoutError:
        raise NotReady(f"not ready after {READY_SECONDS:g} s: {'; '.join(late)}") from None
    if life.done():
        life.result()


def _not_ready(installed: list[Config | SchedulingShard]) -> list[str]:
    found = []
    for each in installed:
        ready = find(each.status.conditions, "Ready")
        if ready is None or ready.status != "True":
            found.append(f"{type(each).__name__} {each.name}: {ready.message if ready else 'not looked at yet'}")
    return found


def _resolver(host: Host, components: list[Component], launcher: Launcher) -> Resolver:
    """Let the API server ask our webhooks by a direct call; those of others are asked over HTTPS."""
    ours = {account_name(component) for component in components}
    reviewers = host.reviewers()

    def resolve(client: Json) -> Reviewer:
        service = client.get("service") or {}
        if service.get("namespace") == SYSTEM_NAMESPACE and service.get("name") in ours:
            return reviewers[service["path"]]
        if service.get("namespace") in launcher.namespaces:
            return launcher.resolve(client)
        return over_https(client)

    return resolve


async def _register_webhooks(cluster: Cluster, components: list[Component]) -> None:
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
    }
    if component.settings is None:
        return None
    return convert(component.settings, chosen.get(component.name, {}))
