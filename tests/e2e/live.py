"""All services on the embedded or the real API server in real time: own accounts, webhooks that are really called."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from spinney.api.admission import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from spinney.api.core import Node, Secret
from spinney.api.kai import Config, Queue, SchedulingShard
from spinney.app.components import load
from spinney.embedded.nodes.kubelet import Kubelets
from spinney.embedded.nodes.node import Nodes
from spinney.embedded.nodes.profile import Profile
from spinney.kube.admission.review import Reviewer
from spinney.kube.admission.server import WebhookServer
from spinney.kube.caches.cache import Caches
from spinney.kube.client.client import Client
from spinney.kube.clock import SystemClock
from spinney.kube.errors import ApiError, NotFound
from spinney.kube.runtime import Runtime
from spinney.services.platform.deployments import secret_name
from spinney.services.platform.launcher import Launcher
from spinney.services.platform.processes import Process
from spinney.services.platform.settings import PlatformSettings
from spinney.services.platform.shard_config import NAMESPACE
from spinney.sim.installation import install_base, platform, wait_ready
from tests import worlds
from tests.e2e.installation import Installed
from tests.waiting import alongside, object_until, until

ANSWERING = {
    "admission": "admission",
    "queue-controller": "queue-controller",
    "podgroup-controller": "podgroup-controller",
}
# Only our webhook objects to it.
ODD_QUEUE: dict[str, Any] = {"metadata": {"name": "odd"}, "spec": {"resources": {"gpu": {"quota": -5}}}}


@asynccontextmanager
async def services(cluster: worlds.Cluster, nodes: int) -> AsyncIterator[Installed]:
    """An installation with some nodes of 8 GPUs, which goes as it came."""
    client = cluster.client()
    await install_base(client)
    held = Installed(client, cluster.client)
    answers = {name: Answers(name) for name in ANSWERING}
    profile = Profile(count=nodes, racks=1, blocks=1, gpus=8, prefix=cluster.unique("gpu"))
    async with alongside(*(each.serve() for each in answers.values())):
        settings = PlatformSettings(webhook_urls={name: await each.url() for name, each in answers.items()})
        async with (
            simulated_nodes(cluster, profile),
            platform(lambda *of: _client(cluster, *of), SystemClock(), settings) as launcher,
        ):
            try:
                for each in answers.values():
                    await each.answer_for(launcher, client)
                await wait_ready(held.client)
                await _called(client)
                yield held
                await held.clean()
            finally:
                await _uninstall(held)


def _client(cluster: worlds.Cluster, namespace: str, account: str) -> Client:
    return cluster.client(f"system:serviceaccount:{namespace}:{account}")


class Answers:
    """Stands for the Service of a process: takes reviews by TLS and hands them to the process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._launcher: Launcher | None = None
        self._port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._server = WebhookServer({hook.path: self._reviewer(hook.path) for hook in load(ANSWERING[name]).webhooks})

    def _reviewer(self, path: str) -> Reviewer:
        async def answer(body: bytes) -> bytes:
            assert self._launcher is not None
            return await self._launcher.resolve({"service": {"path": path}})(body)

        return answer

    async def serve(self) -> None:
        """Listen until cancelled."""
        await self._server.serve("127.0.0.1", 0, self._port.set_result)

    async def url(self) -> str:
        """Where it listens."""
        return f"https://127.0.0.1:{await self._port}"

    async def answer_for(self, launcher: Launcher, client: Client) -> None:
        """Take the certificate that the operator made."""
        self._launcher = launcher
        name = secret_name(Process(self._name, self._name, self._name, PlatformSettings()))
        made = await object_until(client, Secret, (NAMESPACE, name), lambda secret: secret is not None)
        assert made is not None
        self._server.use(*(base64.b64decode(made.data[key]).decode() for key in ("tls.crt", "tls.key")))


async def _called(client: Client) -> None:
    """Wait until the API server asks about queues: registrations reach it by a watch of its own."""

    async def refused() -> bool:
        try:
            await client.create(Queue, ODD_QUEUE)
        except ApiError as error:
            return "quota is -5" in str(error)
        await client.delete(Queue, ODD_QUEUE["metadata"]["name"])
        return False

    await until(refused, every=0.1)


async def _uninstall(held: Installed) -> None:
    """Take away what other tests would feel, without waiting for the garbage collector."""
    client = held.client
    for shard in (await client.list(SchedulingShard)).items:
        await client.delete(SchedulingShard, shard.name)
    with suppress(NotFound):
        await client.delete(Config, "kai-config")
    for kind in (MutatingWebhookConfiguration, ValidatingWebhookConfiguration):
        for item in (await client.list(kind, labels="app.kubernetes.io/managed-by=kai-operator")).items:
            with suppress(NotFound):
                await client.delete(kind, item.name)

    async def unasked() -> bool:
        try:
            await client.create(Queue, ODD_QUEUE)
        except ApiError:
            return False
        await client.delete(Queue, ODD_QUEUE["metadata"]["name"])
        return True

    await held.eventually(unasked)


@asynccontextmanager
async def simulated_nodes(cluster: worlds.Cluster, profile: Profile) -> AsyncIterator[Caches]:
    """Add simulated nodes for the block; where the cluster has no kubelets of its own, they run here."""
    client = cluster.client()
    runtime = Runtime(client=client, caches=Caches(client), clock=SystemClock())
    registry = Nodes(runtime, lease_seconds=10.0 if cluster.name == "real" else None)
    lives: list[Any] = [runtime.caches.run()]
    if cluster.name == "real":
        lives += [registry.run(), Kubelets(runtime).run()]
    async with alongside(*lives):
        await registry.register(profile)
        yield runtime.caches
        for index in range(profile.count):
            await client.delete(Node, profile.name(index))
