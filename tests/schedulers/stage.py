"""A cluster for the stories: a real control plane, one scheduler, our operator with its webhooks, simulated nodes."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from spinney.api.core import Namespace
from spinney.api.crd import crds
from spinney.api.grove import PodCliqueSet
from spinney.api.kai import Queue
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.untyped import untyped
from spinney.app.components import load
from spinney.app.serving import WebhookOptions, serve_webhooks
from spinney.backends.component import BackendsConfig
from spinney.backends.registry import Registry
from spinney.backends.served import discover
from spinney.grove.component import COMPONENT as GROVE
from spinney.kube.caches.cache import Cache
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from spinney.kube.errors import ApiError
from spinney.kube.runtime import Component
from spinney.testing.controlplane import ControlPlane
from spinney.testing.process import free_ports
from spinney.testing.schedulers.entries import Entry
from spinney.testing.schedulers.launches import Setup
from spinney.testing.schedulers.running import Scheduler
from tests import make
from tests.backends import live
from tests.backends.kubescheduler import pretending
from tests.schedulers import topology
from tests.schedulers.place import Place
from tests.waiting import PATIENCE, running, until


class Stage:
    """One cluster with one scheduler; stories run on it side by side, each at a place of its own."""

    def __init__(self, entry: Entry, plane: ControlPlane) -> None:
        self.entry = entry
        self.client = plane.client()
        self._plane = plane
        self._other = Scheduler(entry.program, plane) if entry.program else None
        self._operator = Host(self.client, SystemClock(), [(pretending(), None), _configured(GROVE)])
        self.pods: Cache[Pod] = self._operator.caches.of(Pod)
        self.gangs: Cache[PodGang] = self._operator.caches.of(PodGang)
        self._lives = AsyncExitStack()
        self._backend: AsyncExitStack | None = None
        self._serving: AsyncExitStack | None = None

    async def install(self) -> None:
        """Create every kind, then start the scheduler, the operator and the backend."""
        if self._other is not None:
            # Its own kinds come first: KAI's are the same as some of ours.
            await self._other.install(self.client)
        await live.install(self.client, crds())
        if self.entry.backend == "kai":
            await self._create_queues()
        await topology.install(self)
        await self.start_scheduler()
        await self._lives.enter_async_context(running(self._operator))
        await self.start_backend()
        await self._serve_webhooks()

    async def close(self) -> None:
        """Stop all of it but the control plane."""
        await self.stop_backend()
        await self.stop_scheduler()
        await self._lives.aclose()
        await self.client.close()

    async def place(self, name: str) -> Place:
        """A namespace for a story."""
        await self.client.create(Namespace, {"metadata": {"name": name}})
        return Place(self, name)

    async def start_scheduler(self, setup: Setup = Setup.WITH_TOPOLOGY) -> None:
        """Start the scheduler, whoever it is; only other projects' have more than one set-up."""
        if self._other is not None:
            await self._other.start(self.client, setup)
        elif self.entry.services:
            services = [_configured(load(name)) for name in self.entry.services]
            self._serving = AsyncExitStack()
            await self._serving.enter_async_context(running(Host(self.client, SystemClock(), services)))
        else:
            await asyncio.to_thread(self._plane.start_scheduler)

    async def stop_scheduler(self) -> None:
        """Stop the scheduler, as a crash of its node would."""
        if self._other is not None:
            await asyncio.to_thread(self._other.stop)
        elif self._serving is not None:
            await self._serving.aclose()
            self._serving = None
        else:
            await asyncio.to_thread(self._plane.stop, "kube-scheduler")

    async def start_backend(self) -> None:
        """Switch the backend of this scheduler on."""
        component = load("backends")
        backend = Host(self.client, SystemClock(), [(component, BackendsConfig(only=(self.entry.backend,)))])
        self._backend = AsyncExitStack()
        await self._backend.enter_async_context(running(backend))

    async def stop_backend(self) -> None:
        """Switch the backend off."""
        if self._backend is not None:
            await self._backend.aclose()
            self._backend = None

    async def nothing_left(self, namespace: str) -> None:
        """Wait until none of the scheduler's own objects is left in a namespace."""
        backend = Registry.load().some((self.entry.backend,))[0]
        served = await discover(self.client, backend.resources)
        kinds = [resource for resource in backend.resources if resource.namespaced and served.has(resource)]

        async def gone() -> bool:
            return not [item for kind in kinds for item in (await self.client.list(untyped(kind), namespace)).items]

        await until(gone)

    async def spinney(self, *arguments: str) -> str:
        """What the `spinney` command prints about this cluster."""
        command = [sys.executable, "-m", "spinney.cli", *arguments, f"--kubeconfig={self._plane.kubeconfig()}"]
        ran = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT)
        try:
            async with asyncio.timeout(PATIENCE):
                printed, _ = await ran.communicate()
        except TimeoutError:
            ran.kill()
            raise AssertionError(f"not ended within {PATIENCE:g} s: spinney {' '.join(arguments)}") from None
        return printed.decode()

    async def until_printed(self, words: str, *arguments: str) -> None:
        """Wait until a `spinney` command prints some words."""

        async def printed() -> bool:
            return words in await self.spinney(*arguments)

        await until(printed, every=1.0, describe=lambda: self.spinney(*arguments))

    def tail(self) -> str:
        """The end of the scheduler's log, where it has one of its own."""
        return self._other.tail() if self._other is not None else ""

    async def _create_queues(self) -> None:
        for name, parent in (("default-parent-queue", ""), ("default-queue", "default-parent-queue")):
            await self.client.create(Queue, make.queue(name, parent).unlimited().build())

    async def _serve_webhooks(self) -> None:
        (port,) = free_ports(1)
        options = WebhookOptions(url=f"https://127.0.0.1:{port}")
        serving = asyncio.create_task(serve_webhooks(self._operator, [GROVE], options, "default"))
        self._lives.push_async_callback(_ended, serving)
        # Admission reaches the API server by a watch of its own: a set that nobody may create tells when.
        odd = (
            make.pcs("odd", "default").clique("a", 1, schedulerName="volcano").clique("b", 1, schedulerName="yunikorn")
        )

        async def refused() -> bool:
            try:
                await self.client.create(PodCliqueSet, odd.build(), "default")
            except ApiError:
                return True
            await self.client.delete(PodCliqueSet, ("default", "odd"))
            return False

        await until(refused, every=0.2)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _configured(component: Component) -> tuple[Component, Any]:
    return component, component.settings() if component.settings else None


@asynccontextmanager
async def staged(entry: Entry, folder: Path) -> AsyncIterator[Stage]:
    """A cluster with one scheduler, for as long as the block runs."""
    with ControlPlane(folder, entry.kubernetes) as plane:
        plane.start_controllers()
        stage = Stage(entry, plane)
        try:
            await stage.install()
            yield stage
        finally:
            await stage.close()
