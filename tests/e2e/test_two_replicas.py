"""Two replicas of everything, in virtual time: when the leader dies, the other one goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from spinney.api.coordination import Lease
from spinney.api.core import Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json, convert
from spinney.app.components import load
from spinney.app.installation import cluster_objects, install, install_crds, platform_objects
from spinney.embedded.cluster import Cluster
from spinney.embedded.nodes.profile import Profile
from spinney.grove.admission.defaulting import with_defaults
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.controllers.host import Host
from spinney.kube.process_settings import Timing
from spinney.sim.loop import clock, run_virtual
from tests import make

COMPONENTS = ("grove", "backends", "podgrouper", "podgroup-controller", "queue-controller", "scheduler", "binder")
NAMESPACE = "spinney-system"


def replica(cluster: Cluster, identity: str) -> Host:
    """A process with all components, each of which acts only while it holds its Lease."""
    components = [load(name) for name in COMPONENTS]
    configured = [(each, convert(each.settings, {}) if each.settings is not None else None) for each in components]
    return Host(cluster.client(), cluster.clock, configured, namespace=NAMESPACE, identity=identity)


@asynccontextmanager
async def replicas(cluster: Cluster) -> AsyncIterator[dict[str, asyncio.Task[None]]]:
    """Two of them; the first one leads."""
    lives: dict[str, asyncio.Task[None]] = {}
    for identity in ("first", "second"):
        host = replica(cluster, identity)
        lives[identity] = asyncio.create_task(host.run())
        if identity == "first":
            await host.ready.wait()
    try:
        yield lives
    finally:
        for life in lives.values():
            life.cancel()
        await asyncio.gather(*lives.values(), return_exceptions=True)


def gang(name: str) -> Json:
    return with_defaults(make.pcs(name, "default").clique("a", 4, schedulerName="kai-scheduler").build())


async def run_all(client: Client, count: int) -> None:
    """Wait until so many pods run."""
    while [pod.status.phase for pod in (await client.list(Pod, "default")).items] != ["Running"] * count:  # noqa: ASYNC110  # virtual time
        await asyncio.sleep(0.25)


def test_a_gang_created_when_the_leader_dies_runs_within_the_lease_time() -> None:
    """What the dead leader began is found and finished by the other replica, and nothing that ran is touched."""

    async def main() -> None:
        async with Cluster(nodes=Profile(count=4), clock=clock(), chance=Chance(7)) as cluster:
            client = cluster.client()
            await install(client, cluster_objects())
            await install_crds(client)
            await install(client, platform_objects())
            async with replicas(cluster) as lives:
                await client.create(PodCliqueSet, gang("before"), "default")
                await run_all(client, 4)
                before = {pod.uid for pod in (await client.list(Pod, "default")).items}
                held = {lease.spec.holder_identity for lease in (await client.list(Lease, NAMESPACE)).items}
                assert held == {"first"}
                await client.create(PodCliqueSet, gang("during"), "default")
                lives["first"].cancel()
                timing = Timing()
                async with asyncio.timeout(timing.duration + 2 * timing.retry_period + 5):
                    await run_all(client, 8)
                assert before <= {pod.uid for pod in (await client.list(Pod, "default")).items}
                held = {lease.spec.holder_identity for lease in (await client.list(Lease, NAMESPACE)).items}
                assert held == {"second"}

    run_virtual(main(), limit=3600)
