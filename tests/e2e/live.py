"""All services on the embedded or the real API server in real time: own accounts, webhooks that are really called."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
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
    with _running(*(each.serve() for each in answers.values())):
        settings = PlatformSettings(webhook_urls={name: await each.url() for name, each in answers.items()})
        async with _nodes(cluster, nodes), platform(lambda *of: _client(cluster, *of), SystemClock(), settings) as at:
            try:
                for each in answers.values():
                    await each.answer_for(at, client)
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
        for _ in range(1800):
            with suppress(NotFound):
                data = (await client.get(Secret, (NAMESPACE, name))).data
                parts = [base64.b64decode(data[key]).decode() for key in ("tls.crt", "tls.key")]
                self._server.use(*parts)
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"no certificate for {self._name}")


async def _called(client: Client) -> None:
    """Wait until the API server asks about queues: registrations reach it by a watch of its own."""
    for _ in range(1800):
        try:
            await client.create(Queue, ODD_QUEUE)
        except ApiError as error:
            if "quota is -5" in str(error):
                return
        else:
            await client.delete(Queue, ODD_QUEUE["metadata"]["name"])
        await asyncio.sleep(0.1)
    raise AssertionError("the webhooks are not called")


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


@contextmanager
def _running(*lives: Any) -> Iterator[None]:
    tasks = [asyncio.create_task(life) for life in lives]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


@asynccontextmanager
async def _nodes(cluster: worlds.Cluster, count: int) -> AsyncIterator[None]:
    client = cluster.client()
    runtime = Runtime(client=client, caches=Caches(client), clock=SystemClock())
    registry = Nodes(runtime, lease_seconds=10.0 if cluster.name == "real" else None)
    lives: list[Any] = [runtime.caches.run()]
    if cluster.name == "real":
        lives += [registry.run(), Kubelets(runtime).run()]
    profile = Profile(count=count, racks=1, blocks=1, gpus=8, prefix=cluster.unique("gpu"))
    with _running(*lives):
        await registry.register(profile)
        yield
        for index in range(count):
            await client.delete(Node, profile.name(index))
