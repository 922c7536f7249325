"""Run components side by side in one process, on one connection and one set of caches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from spinney.api.meta import ObjectMeta, Resource
from spinney.api.untyped import untyped
from spinney.kube.admission.review import Reviewer, reviewers
from spinney.kube.caches.cache import Caches
from spinney.kube.client.client import Client
from spinney.kube.client.wire import Unreadable
from spinney.kube.clock import Clock
from spinney.kube.controllers.events import Recorder
from spinney.kube.controllers.leader import Election
from spinney.kube.manifests import account_name
from spinney.kube.process_settings import Timing
from spinney.kube.runtime import Component, Runtime

_log = structlog.get_logger("spinney.kube.controllers.host")


def _lease(component: Component, config: Any, namespace: str) -> tuple[str, str]:
    """Name and namespace of the Lease that a component holds while it acts."""
    named = component.lease(config) if component.lease is not None else account_name(component)
    elsewhere, _, name = named.rpartition("/")
    return name, elsewhere or namespace


class Host:
    """Runs some components in a process. `ready` is set once all of them are ready.

    With an `identity` each component acts only while it holds its Lease; reviews are answered in any case.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        components: Sequence[tuple[Component, Any]],
        *,
        namespace: str = "default",
        caches: Caches | None = None,
        identity: str = "",
        timing: Timing | None = None,
    ) -> None:
        self.client = client
        self.clock = clock
        self.caches = caches or Caches(client)
        self.ready = asyncio.Event()
        self._recorder = Recorder(client.named("caches"), clock, "spinney")
        self._components = components
        self._namespace = namespace
        self._waiting = {component.name for component, _ in components}
        self._elections = {
            component.name: Election(
                client, clock, *_lease(component, config, namespace), identity=identity, timing=timing
            )
            for component, config in components
            if identity
        }
        self.runtimes = {component.name: self._runtime(component, config) for component, config in components}

    @property
    def not_ready(self) -> list[str]:
        """The components that should be ready and are not; one that waits for its Lease counts as ready."""
        return sorted(name for name in self._waiting if name not in self._elections or self._elections[name].leading)

    def reviewers(self) -> dict[str, Reviewer]:
        """The reviewer of each webhook path of all components."""
        return {
            path: reviewer
            for component, _ in self._components
            for path, reviewer in reviewers(component, self.runtimes[component.name]).items()
        }

    def _report_unreadable(self, resource: Resource, item: Unreadable) -> None:
        message = (
            f"set aside until it is mended: it does not fit {resource.api_version} {resource.kind}: {item.problem}"
        )
        metadata = ObjectMeta(name=item.name, namespace=item.namespace, uid=item.uid)
        self._recorder.event(untyped(resource)(metadata=metadata), "Warning", "Unreadable", message)

    async def run(self) -> None:
        """Run until cancelled, or until a component fails."""
        self.caches.set_aside.on_new(self._report_unreadable)
        async with asyncio.TaskGroup() as tasks:
            if not self.caches.running:
                tasks.create_task(self.caches.run(), name="caches")
            for component, config in self._components:
                tasks.create_task(self._life(component, config), name=component.name)

    async def _life(self, component: Component, config: Any) -> None:
        runtime = self.runtimes[component.name]
        election = self._elections.get(component.name)
        if election is None:
            await component.run(runtime, config)
        else:
            await election.lead(lambda: component.run(runtime, config))

    def _runtime(self, component: Component, config: Any) -> Runtime:
        election = self._elections.get(component.name)
        return Runtime(
            client=self.client.named(component.name, election.may_write if election else None),
            caches=self.caches,
            clock=self.clock,
            ready=self._ready(component.name),
            namespace=self._namespace,
            settings=config,
        )

    def _ready(self, name: str) -> Callable[[], None]:
        def ready() -> None:
            self._waiting.discard(name)
            _log.info("component.ready", component=name)
            if not self._waiting:
                self.ready.set()

        return ready
