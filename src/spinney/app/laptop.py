"""A cluster with all components in this process: what `spinney up` and `spinney demo` run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spinney import initc
from spinney.api.admission import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from spinney.api.meta import Json, Resource
from spinney.api.rbac import ClusterRole
from spinney.app.in_process import components_in
from spinney.app.installation import (
    cluster_objects,
    install,
    install_crds,
    platform_objects,
)
from spinney.app.operators import start_operators
from spinney.embedded.apiserver.access.credentials import Authority, write_kubeconfig
from spinney.embedded.apiserver.http.listener import Listener
from spinney.embedded.apiserver.persistence import DataFolder
from spinney.embedded.apiserver.server import ApiServer
from spinney.embedded.apiserver.store.store import SPACE, Store
from spinney.embedded.cluster import Cluster
from spinney.embedded.controllers.autoscaling.cluster_autoscaler import ClusterAutoscaler
from spinney.embedded.controllers.autoscaling.node_groups import NodeGroup
from spinney.embedded.controllers.devices.compute_domains import ComputeDomains
from spinney.embedded.nodes.kubelet import Program
from spinney.embedded.nodes.profile import Profile
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.flow import PerTurn
from spinney.kube.clock import SystemClock
from spinney.web.settings import DashboardSettings

if TYPE_CHECKING:
    from spinney.answers.whatif.applying import Expand

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
    # What all objects may take, in bytes.
    space: int = SPACE
    bare: bool = False
    # Stand-ins for operators of other projects, with their kinds.
    operators: bool = True
    # Groups of nodes that a stand-in autoscaler adds and removes.
    node_groups: tuple[NodeGroup, ...] = ()
    mnnvl: bool = False
    authorizer: bool = False
    # None serves no dashboard.
    dashboard: DashboardSettings | None = None
    # Works out what controllers make of the workloads of a what-if question; None refuses such questions.
    expand: Expand | None = None
    # The folder that the scheduler keeps its decisions in; None for none.
    decision_log: Path | None = None


@dataclass
class Laptop:
    """A cluster that runs, and the components beside it."""

    cluster: Cluster
    url: str
    components: list[str]
    life: asyncio.Task[None] | None = None
    # The link to the dashboard; empty where none is served.
    dashboard: str = ""

    @property
    def client(self) -> Client:
        """An administrator's client."""
        return self.cluster.client()

    async def failed(self) -> None:
        """Wait until a task that should never end has ended, and raise its error."""
        lives = [asyncio.create_task(self.cluster.failed()), *([self.life] if self.life else ())]
        done, _ = await asyncio.wait(lives, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


@asynccontextmanager
async def laptop(options: Options) -> AsyncIterator[Laptop]:
    """Start everything; inside the block it is ready."""
    clock, chance = SystemClock(), Chance()
    async with AsyncExitStack() as stack:
        server = ApiServer(clock, chance, store=Store(space=options.space))
        authority = Authority(clock.now())
        if options.data_dir is not None:
            folder = DataFolder(options.data_dir)
            stack.push_async_callback(folder.close)
            server, authority = folder.server(clock, chance, space=options.space), folder.authority(clock)
        trusted = authority.bundle.trusted
        cluster = Cluster(
            nodes=options.nodes,
            clock=clock,
            chance=chance,
            server=server,
            programs=_PROGRAMS,
            ca_certificate=trusted,
            flow=PerTurn(),
        )
        yield await stack.enter_async_context(_running(cluster, authority, options))


def _roles_of_users() -> list[tuple[Resource, Json]]:
    """What the roles view, edit and admin may do with our kinds, as an installation has it."""
    from spinney.app.install.access import user_roles  # noqa: PLC0415  # not for a bare cluster

    return [(ClusterRole.resource, role) for role in user_roles()]


@asynccontextmanager
async def _running(stopped: Cluster, authority: Authority, options: Options) -> AsyncIterator[Laptop]:
    async with stopped as cluster, _listening(cluster, authority, options) as url:
        client = cluster.client()
        await _forget_webhooks(client)
        await install(client, cluster_objects())
        if options.node_groups:
            register = cluster.nodes.register_one
            await cluster.start_controller(partial(ClusterAutoscaler, groups=options.node_groups, register=register))
        if options.bare:
            yield Laptop(cluster, url, [])
            return
        from spinney.app.dashboard import dashboard_of  # noqa: PLC0415  # slow to import, and not for a bare cluster

        await install_crds(client)
        await install(client, [*platform_objects(), *_roles_of_users()])
        await cluster.start_controller(ComputeDomains)
        if options.operators:
            await start_operators(cluster)
        settings = {"network": {"autoMNNVLEnabled": options.mnnvl}, "authorizer": {"enabled": options.authorizer}}
        async with (
            components_in(cluster, {"grove": settings}, str(options.decision_log or "")) as (names, life),
            dashboard_of(cluster, options.dashboard, options.expand) as link,
        ):
            yield Laptop(cluster, url, names, life, link)


async def _forget_webhooks(client: Client) -> None:
    """Delete webhooks by Service: they are ours, from an earlier process, and are registered again once they answer."""
    mutating = (await client.list(MutatingWebhookConfiguration)).items
    validating = (await client.list(ValidatingWebhookConfiguration)).items
    both: list[MutatingWebhookConfiguration | ValidatingWebhookConfiguration] = [*mutating, *validating]
    for configuration in both:
        if any(hook.client_config.service for hook in configuration.webhooks):
            await client.delete(type(configuration), configuration.name)


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
