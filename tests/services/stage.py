"""A stage for services: the embedded API with our kinds in virtual time, the components under test, and faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from spinney.api.core import Node, Pod
from spinney.api.crd import crds
from spinney.api.kai import PodGroup, Queue
from spinney.api.meta import Json, Resource
from spinney.embedded.apiserver.server import ApiServer
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.transport import InProcess, Request, Response, User
from spinney.kube.controllers.host import Host
from spinney.kube.errors import NotFound, status_body
from spinney.kube.runtime import Component
from spinney.sim.loop import clock
from tests import make

ADMIN = User("admin", ("system:masters",))
CRD = Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)


async def _nothing(request: Request) -> None: ...


class Faulty:
    """A transport whose writes can be made to fail."""

    def __init__(self, inner: InProcess) -> None:
        self._inner = inner
        # Called with every write; an answer other than None is what the caller gets instead.
        self.fault: Callable[[Request], Response | None] = lambda request: None
        # Done just before every write, and just after it, before anybody hears of it.
        self.before: Callable[[Request], Awaitable[None]] = _nothing
        self.after: Callable[[Request], Awaitable[None]] = _nothing
        # Done before the events of a watch are heard.
        self.events: Callable[[Request], Awaitable[None]] = _nothing

    async def send(self, request: Request) -> Response:
        if request.method != "GET":
            await self.before(request)
            instead = self.fault(request)
            if instead is not None:
                return instead
        response = await self._inner.send(request)
        if request.method != "GET":
            await self.after(request)
        if response.stream is None:
            return response
        return Response(response.status, response.body, response.headers, self._heard(request, response.stream))

    async def _heard(self, request: Request, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for event in events:
            await self.events(request)
            yield event

    async def close(self) -> None: ...


def broken(reason: str = "InternalError", code: int = 500) -> Response:
    """An answer that says no."""
    return Response(code, msgspec.json.encode(status_body(code, reason, "broken on purpose")))


class Stage:
    """What a test holds: a client of its own, and the transport of the components."""

    def __init__(self, client: Client, transport: Faulty, components: Sequence[tuple[Component, Any]] = ()) -> None:
        self.client = client
        self.transport = transport
        self._components = components
        self._life: asyncio.Task[None] | None = None
        self._lives = 0

    async def start(self) -> None:
        """Run the components, from the beginning if they ran already."""
        await self.stop()
        self._lives += 1
        # No two processes draw the same names.
        self.host = Host(Client(self.transport, Chance(2 + self._lives)), clock(), self._components)
        self._life = asyncio.create_task(self.host.run())
        await self.host.ready.wait()

    async def stop(self) -> None:
        """Stop the components; what they remember is in the API."""
        if self._life is not None:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)

    async def node(self, name: str, gpus: int = 8, **labels: str) -> None:
        """A node."""
        built = make.node(name, gpus)
        for key, value in labels.items():
            built.label(key.replace("__", "/").replace("_", "."), value)
        await self.client.create(Node, built.build())
        # New nodes are tainted as not ready; the controller that takes the taint away is not on this stage.
        await self.client.patch(Node, name, {"spec": {"taints": None}})

    async def queue(self, name: str, parent: str = "", **gpu: float) -> None:
        """A queue; without limits unless told."""
        await self.client.create(Queue, make.queue(name, parent).gpu(**gpu).build())

    async def gang(self, name: str, members: int, gpus: int, minimum: int | None = None, **spec: Any) -> None:
        """A PodGroup and its pods."""
        wanted = {"minMember": members if minimum is None else minimum, "queue": "q", **spec}
        await self.client.create(PodGroup, {"metadata": {"name": name}, "spec": wanted}, "default")
        for index in range(members):
            pod = make.pod(f"{name}-{index}").scheduler("kai-scheduler").gpus(gpus).annotate("pod-group-name", name)
            await self.client.create(Pod, pod.build(), "default")

    async def placed(self, prefix: str) -> dict[str, str]:
        """Where pods are, by name."""
        pods = (await self.client.list(Pod, "default")).items
        return {pod.name: pod.spec.node_name for pod in pods if pod.name.startswith(prefix)}

    async def gone(self, of: Resource, name: str, namespace: str = "") -> bool:
        """Whether an object is not there."""
        try:
            await self.client.get(of, (namespace, name))
        except NotFound:
            return True
        return False


@asynccontextmanager
async def stage(
    *components: tuple[Component, Any], before: Sequence[tuple[Resource, Json, str]] = ()
) -> AsyncIterator[Stage]:
    """The components at work, with a queue `q`; `before` is created before they start."""
    server = ApiServer(clock(), Chance(1))
    await server.start()
    client = Client(InProcess(server, ADMIN), Chance(2))
    for crd in crds():
        await client.create(CRD, crd)
    transport = Faulty(InProcess(server, ADMIN))
    held = Stage(client, transport, components)
    await held.queue("q")
    for resource, body, namespace in before:
        await client.create(resource, body, namespace)
    await held.start()
    try:
        yield held
    finally:
        await held.stop()
