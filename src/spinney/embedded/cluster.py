"""A whole cluster in this process: API server, the controllers that users expect, and simulated nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from spinney.api.core import Node, Pod, Secret, ServiceAccount
from spinney.embedded.apiserver.access.credentials import Authority
from spinney.embedded.apiserver.read.get_list import field_tests
from spinney.embedded.apiserver.read.selectors import field_matcher
from spinney.embedded.apiserver.server import ApiServer
from spinney.embedded.controllers.accounts.service_accounts import ServiceAccounts, Tokens
from spinney.embedded.controllers.registry import CONTROLLERS, Factory
from spinney.embedded.nodes import metrics_api
from spinney.embedded.nodes.commands import NodeCommands
from spinney.embedded.nodes.kubelet import Kubelets, Program
from spinney.embedded.nodes.metrics_api import Metrics
from spinney.embedded.nodes.node import Nodes
from spinney.embedded.nodes.profile import Profile
from spinney.kube.caches.cache import Caches
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.flow import Flow, InProcessFlow
from spinney.kube.client.transport import InProcess, User
from spinney.kube.clock import Clock, SystemClock
from spinney.kube.runtime import Runtime

ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))
_CONTROL_PLANE = User("system:kube-controller-manager", ("system:masters", "system:authenticated"))
# The last second of the year 9999.
_NEVER = 253402300799


class Cluster:
    """Runs while it is entered: `async with Cluster(nodes=Profile(count=4)) as cluster: …`.

    With a clock and a chance of virtual time it is deterministic: see `sim.loop`. Components are run beside it by
    whoever knows them, through `client`. A flow bounds the requests of its own controllers and kubelets.
    """

    def __init__(
        self,
        *,
        nodes: Profile | None = None,
        clock: Clock | None = None,
        chance: Chance | None = None,
        server: ApiServer | None = None,
        controllers: Sequence[Factory] = CONTROLLERS,
        programs: Mapping[str, Program] | None = None,
        ca_certificate: str = "",
        flow: Flow | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.chance = chance or Chance()
        self.server = server or ApiServer(self.clock, self.chance)
        self._profile = nodes or Profile(count=0)
        # The certificate belongs to the server: a second cluster object on it must use the same.
        trusted = ca_certificate or self.server.ca_certificate or Authority(self.clock.now()).bundle.trusted
        self.server.ca_certificate = ca_certificate = trusted
        self._controllers: tuple[Factory, ...] = (
            *controllers,
            partial(ServiceAccounts, ca_certificate=ca_certificate),
            partial(Tokens, issue=self._issue, ca_certificate=ca_certificate),
        )
        self._programs = programs or {}
        self._client = Client(InProcess(self.server, _CONTROL_PLANE), self.chance, flow=flow)
        self.caches = Caches(self._client)
        self._tasks: list[asyncio.Task[None]] = []
        self.nodes = Nodes(self.runtime("kubelet"))
        self.kubelets = Kubelets(self.runtime("kubelet"), self._programs)
        self.commands = NodeCommands(self.client())
        metrics = Metrics(self.caches.of(Pod), self.caches.of(Node), self.clock)
        self.server.router.aggregated[metrics_api.GROUP] = lambda call: metrics.read(
            call.kind.plural,
            call.namespace,
            call.name,
            call.query.get("labelSelector", ""),
            # The right to one name is the right to a list that selects it.
            field_matcher(field_tests(call.kind, call.query.get("fieldSelector", ""))),
        )

    def client(self, user: User = ADMIN) -> Client:
        """A client for a user, in process; components that share it share its order of requests."""
        return Client(InProcess(self.server, user), self.chance, flow=InProcessFlow())

    def runtime(self, name: str) -> Runtime:
        """The runtime of a controller of the cluster."""
        return Runtime(client=self._client.named(name), caches=self.caches, clock=self.clock)

    async def __aenter__(self) -> Self:
        await self.server.start()
        self._start(self.caches.run(), "caches")
        controllers = [factory(self.runtime("kube-controller-manager")).controller for factory in self._controllers]
        for controller in (self.nodes.controller, self.kubelets.controller, *controllers):
            await self._healthy(controller.synced())
        for controller in controllers:
            self._start(controller.run(), controller.name)
        self._start(self.nodes.run(), "nodes")
        self._start(self.kubelets.run(), "kubelets")
        await self._healthy(self.nodes.register(self._profile))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in reversed(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def start_controller(self, factory: Factory) -> None:
        """Run one more controller, once what it watches is served."""
        controller = factory(self.runtime("kube-controller-manager")).controller
        await self._healthy(controller.synced())
        self._start(controller.run(), controller.name)

    async def failed(self) -> None:
        """Wait until a task that should never end has ended, and raise its error."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
            raise RuntimeError(f"{task.get_name()} ended by itself")

    def _issue(self, account: ServiceAccount, secret: Secret) -> str:
        """A token that lasts as long as its secret."""
        reference = {"name": account.name, "uid": account.uid}
        holder = {"name": secret.name, "uid": secret.uid}
        bound = {"namespace": account.namespace, "serviceaccount": reference, "secret": holder}
        subject = f"system:serviceaccount:{account.namespace}:{account.name}"
        return self.server.tokens.issue({"sub": subject, "exp": _NEVER, "kubernetes.io": bound})

    def _start(self, life: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(life, name=name))

    async def _healthy(self, step: Coroutine[Any, Any, object]) -> None:
        """Run a step of the start; raise the error of a task that fails meanwhile."""
        task = asyncio.create_task(step)
        watch = asyncio.create_task(self.failed())
        await asyncio.wait([task, watch], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            watch.cancel()
            task.result()
            return
        task.cancel()
        await watch
