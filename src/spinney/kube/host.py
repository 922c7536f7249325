"""Runs components side by side in one process, on one connection and one set of caches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from spinney.kube.cache import Caches
from spinney.kube.client import Client
from spinney.kube.clock import Clock
from spinney.kube.runtime import Component, Runtime

_log = structlog.get_logger("spinney.kube.host")


class Host:
    """The life of some components in a process. `ready` is set once all of them act."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        components: Sequence[tuple[Component, Any]],
        namespace: str = "default",
        caches: Caches | None = None,
    ) -> None:
        self.client = client
        self.clock = clock
        self.caches = caches or Caches(client)
        self.ready = asyncio.Event()
        self._components = components
        self._namespace = namespace
        self._waiting = {component.name for component, _ in components}
        self.runtimes = {component.name: self._runtime(component) for component, _ in components}

    @property
    def not_ready(self) -> list[str]:
        """The components that do not act yet."""
        return sorted(self._waiting)

    async def run(self) -> None:
        """Run until cancelled, or until a component fails."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.caches.run(), name="caches")
            for component, config in self._components:
                tasks.create_task(self._life(component, config), name=component.name)

    async def _life(self, component: Component, config: Any) -> None:
        await component.run(self.runtimes[component.name], config)

    def _runtime(self, component: Component) -> Runtime:
        return Runtime(
            client=self.client.named(component.name),
            caches=self.caches,
            clock=self.clock,
            ready=self._ready(component.name),
            namespace=self._namespace,
        )

    def _ready(self, name: str) -> Callable[[], None]:
        def ready() -> None:
            self._waiting.discard(name)
            _log.info("component.ready", component=name)
            if not self._waiting:
                self.ready.set()

        return ready
