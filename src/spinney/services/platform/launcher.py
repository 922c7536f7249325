"""Runs the services as tasks of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from spinney.api.kaiconfig import ConfigSpec
from spinney.api.meta import Json
from spinney.kube.admission.review import Reviewer, reviewers
from spinney.kube.caches.cache import Caches, handlers_end
from spinney.kube.client.client import Client
from spinney.kube.clock import Clock
from spinney.kube.runtime import Component, Runtime
from spinney.services.platform.processes import Process

_log = structlog.get_logger("spinney.platform.launcher")

_FIRST_DELAY, _LONGEST_DELAY = 1.0, 30.0


@dataclass
class _Running:
    process: Process
    # Why it does not serve yet.
    waiting: str
    task: asyncio.Task[None] | None = None
    reviewers: dict[str, Reviewer] = field(default_factory=dict)


class Launcher:
    """Running services by group (the Config, or one shard) and name.

    `client_of` gives a process the client of its account, by namespace and name.
    """

    def __init__(
        self,
        load: Callable[[str], Component],
        client_of: Callable[[str, str], Client],
        caches_of: Callable[[Client], Caches],
        clock: Clock,
        *,
        adjust: Callable[[Process], Process] = lambda process: process,
    ) -> None:
        self._load = load
        self._client_of = client_of
        self._caches_of = caches_of
        self._clock = clock
        self._adjust = adjust
        self._groups: dict[str, dict[str, _Running]] = {}
        # Called when a process becomes ready or fails.
        self.changed: Callable[[], None] = lambda: None

    def objects(self, process: Process, config: ConfigSpec, image: str) -> list[Json]:
        """Nothing: tasks need no objects."""
        return []

    async def keep(self, group: str, processes: Sequence[Process]) -> None:
        """Stop unwanted and changed processes, and start missing ones."""
        running = self._groups.setdefault(group, {})
        # Simulated nodes have no kubelet state to export.
        wanted = {process.name: self._adjust(process) for process in processes if not process.on_every_node}
        answering: dict[str, dict[str, Reviewer]] = {}
        for name in [name for name, instance in running.items() if wanted.get(name) != instance.process]:
            answering[name] = running[name].reviewers
            await self._stop(running.pop(name))
        for name, process in wanted.items():
            if name not in running:
                running[name] = self._start(process, answering.get(name, {}))

    def waiting(self, process: Process, namespace: str) -> str:
        """Why a process does not serve yet."""
        for running in self._groups.values():
            if process.name in running:
                return running[process.name].waiting
        return "" if process.on_every_node else f"{process.name} does not run"

    @property
    def namespaces(self) -> set[str]:
        """The namespaces of running processes."""
        return {instance.process.namespace for running in self._groups.values() for instance in running.values()}

    def resolve(self, client: Json) -> Reviewer:
        """The reviewer behind a webhook's clientConfig, for the embedded API server."""
        path = str((client.get("service") or {}).get("path", ""))
        for running in self._groups.values():
            for instance in running.values():
                if path in instance.reviewers:
                    return instance.reviewers[path]
        raise ConnectionRefusedError(f"nothing answers at {path} yet")

    async def close(self) -> None:
        """Stop everything."""
        for group in list(self._groups):
            await self.keep(group, ())

    def _start(self, process: Process, answering: dict[str, Reviewer]) -> _Running:
        """Start a process; its predecessor's reviewers answer until its own do."""
        _log.info("process.started", process=process.name)
        instance = _Running(process, f"{process.name} is starting", reviewers=answering)
        instance.task = asyncio.create_task(self._run_forever(instance), name=process.name)
        return instance

    async def _stop(self, instance: _Running) -> None:
        if instance.task is not None:
            instance.task.cancel()
            await asyncio.gather(instance.task, return_exceptions=True)
        _log.info("process.stopped", process=instance.process.name)

    async def _run_forever(self, instance: _Running) -> None:
        """Run a process, again after each end, with a growing delay."""
        delay = _FIRST_DELAY
        while True:
            started = asyncio.get_running_loop().time()
            try:
                with handlers_end():
                    await self._run(instance)
            except Exception as error:
                _log.exception("process.failed", process=instance.process.name)
                instance.waiting = f"{instance.process.name} failed: {_message(error)}"
            else:
                instance.waiting = f"{instance.process.name} ended by itself"
            self.changed()
            if asyncio.get_running_loop().time() - started > _LONGEST_DELAY:
                delay = _FIRST_DELAY
            await asyncio.sleep(delay)
            delay = min(2 * delay, _LONGEST_DELAY)

    async def _run(self, instance: _Running) -> None:
        process = instance.process
        component = self._load(process.component)
        client = self._client_of(process.namespace, process.account).named(process.name)

        def ready() -> None:
            instance.waiting = ""
            self.changed()

        runtime = Runtime(
            client=client,
            caches=self._caches_of(client),
            clock=self._clock,
            ready=ready,
            namespace=process.namespace,
            settings=process.settings,
        )
        if process.webhooks:
            served = component.configured(process.settings) if component.configured is not None else component
            instance.reviewers = reviewers(served, runtime)
        async with asyncio.TaskGroup() as tasks:
            feeding = tasks.create_task(runtime.caches.run()) if not runtime.caches.running else None
            await component.run(runtime, process.settings)
            if feeding is not None:
                feeding.cancel()


def _message(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return _message(error.exceptions[0])
    return str(error) or type(error).__name__
