"""Runs one of the other schedulers beside a control plane: its kinds, its configuration, its programs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread

from spinney.api.meta import Json, Resource
from spinney.kube.client.client import Client
from spinney.kube.errors import AlreadyExists, NotFound
from spinney.testing.controlplane import ControlPlane
from spinney.testing.process import Program
from spinney.testing.schedulers.homes import home
from spinney.testing.schedulers.launches import NAMESPACES, Launch, Setup, Site, arrange

# Schedulers are trusted with everything here: their rights are their own projects' matter.
_GROUPS = ("system:masters",)
_ESTABLISHED_SECONDS = 60.0
_RESTART_SECONDS = 1.0


class _RestartedProgram:
    """A program that is started again whenever it ends by itself, as a kubelet does."""

    def __init__(self, command: list[str], log: Path, environment: Mapping[str, str]) -> None:
        self.crashes = 0
        self._command, self._log, self._environment = command, log, environment
        self._started, self._stopping = Event(), Event()
        self._program: Program | None = None
        # The thread stays as long as the program: Linux ends a program with the thread that started it.
        self._thread = Thread(target=self._keep, daemon=True)
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        """End it; it does not start again."""
        self._stopping.set()
        if self._program is not None:
            self._program.stop()
        self._thread.join()

    def tail(self) -> str:
        """The end of its log."""
        return self._program.tail() if self._program is not None else ""

    def _keep(self) -> None:
        while not self._stopping.is_set():
            self._program = Program(self._command, self._log, self._environment)
            self._started.set()
            self._program.wait()
            self.crashes += not self._stopping.is_set()
            self._stopping.wait(_RESTART_SECONDS)


class Scheduler:
    """One scheduler on a control plane; `install` once, then `start` and `stop` as often as wanted."""

    def __init__(self, name: str, plane: ControlPlane) -> None:
        self.name = name
        self._plane = plane
        self._home = home(name)
        self._folder = plane.folder / name
        self._folder.mkdir(parents=True, exist_ok=True)
        self._programs: list[_RestartedProgram] = []
        self._crashes = 0

    async def install(self, client: Client) -> None:
        """Create the scheduler's namespace and kinds, and wait until the kinds are served."""
        await _create(client, "/api/v1/namespaces", {"metadata": {"name": NAMESPACES[self.name]}})
        definitions = self._home.definitions()
        for document in definitions:
            await _create(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", document)
        for document in definitions:
            for version in document["spec"]["versions"]:
                if version["served"]:
                    names = document["spec"]["names"]["plural"]
                    await _served(client, f"/apis/{document['spec']['group']}/{version['name']}/{names}")

    async def start(self, client: Client, setup: Setup) -> None:
        """Write its configuration into the cluster, where its chart keeps it, and start its programs with it."""
        kubeconfig = self._plane.kubeconfig(self.name, _GROUPS)
        arrangement = arrange(self.name, Site(self._home.config, self._folder, kubeconfig, setup))
        for resource, body in arrangement.objects:
            await _written(client, resource, body)
        self._programs = [self._launched(launch) for launch in arrangement.launches]

    def stop(self) -> None:
        """Stop its programs."""
        for program in self._programs:
            program.stop()
        self._crashes += sum(program.crashes for program in self._programs)
        self._programs.clear()

    @property
    def crashes(self) -> int:
        """How often one of its programs ended by itself and was started again."""
        return self._crashes + sum(program.crashes for program in self._programs)

    def tail(self) -> str:
        """How often it crashed and the ends of its logs, for an error message."""
        return "\n".join([f"crashes: {self.crashes}", *(program.tail() for program in self._programs)])

    def _launched(self, launch: Launch) -> _RestartedProgram:
        command = [str(self._home.programs[launch.program]), *launch.arguments]
        if launch.confined:
            port = self._plane.url.rpartition(":")[2]
            command = [sys.executable, "-m", "spinney.testing.schedulers.confined", port, *command]
        return _RestartedProgram(command, self._folder / f"{launch.program}.log", launch.environment)


async def _written(client: Client, resource: Resource, body: Json) -> None:
    """Create an object of a namespace, or make it what it should be."""
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    try:
        await client.create(resource, body, namespace)
    except AlreadyExists:
        await client.patch(resource, (namespace, name), {key: body[key] for key in body if key != "metadata"})


async def _create(client: Client, path: str, body: Json) -> None:
    try:
        await client.call("POST", path, body=body)
    except AlreadyExists:
        return


async def _served(client: Client, path: str) -> None:
    async with asyncio.timeout(_ESTABLISHED_SECONDS):
        while True:
            try:
                await client.call("GET", path)
                return
            except NotFound:
                await asyncio.sleep(0.1)
