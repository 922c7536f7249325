"""Runs one of the other schedulers beside a control plane: its kinds, its configuration, its programs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import yaml

from spinney.api.meta import Json
from spinney.kube.client.client import Client
from spinney.kube.errors import AlreadyExists, NotFound
from spinney.testing.controlplane import ControlPlane
from spinney.testing.process import Program, free_ports
from spinney.testing.schedulers import build

# Schedulers are trusted with everything here: their rights are their own projects' matter.
_GROUPS = ("system:masters",)
_ESTABLISHED_SECONDS = 60.0
_RESTART_SECONDS = 1.0


@dataclass(frozen=True)
class Launch:
    """One program to start: its command line and what it finds in its environment."""

    program: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    confined: bool = False


class _Kept:
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
        """End it for good."""
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
        self._binaries = build.ensure(name)
        self._folder = plane.folder / name
        self._folder.mkdir(parents=True, exist_ok=True)
        self._programs: list[_Kept] = []
        self._crashes = 0

    async def install(self, client: Client) -> None:
        """Create the scheduler's namespace, configuration and kinds, and wait until the kinds are served."""
        await _create(client, "/api/v1/namespaces", {"metadata": {"name": _NAMESPACES[self.name]}})
        if self.name == "yunikorn":
            config = {"metadata": {"name": "yunikorn-configs"}, "data": {"queues.yaml": _YUNIKORN_QUEUES}}
            await _create(client, f"/api/v1/namespaces/{_NAMESPACES[self.name]}/configmaps", config)
        for document in self._documents("crds"):
            await _create(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", document)
        for document in self._documents("crds"):
            for version in document["spec"]["versions"]:
                if version["served"]:
                    names = document["spec"]["names"]["plural"]
                    await _served(client, f"/apis/{document['spec']['group']}/{version['name']}/{names}")

    def start(self) -> None:
        """Start its programs with the configuration that its project ships, and topology switched on."""
        kubeconfig = self._plane.kubeconfig(self.name, _GROUPS)
        for launch in _LAUNCHES[self.name](self._binaries / "config", self._folder, kubeconfig):
            self._programs.append(self._launched(launch))

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

    def _launched(self, launch: Launch) -> _Kept:
        command = [str(self._binaries / launch.program), *launch.arguments]
        if launch.confined:
            port = self._plane.url.rpartition(":")[2]
            command = [sys.executable, "-m", "spinney.testing.schedulers.confined", port, *command]
        return _Kept(command, self._folder / f"{launch.program}.log", launch.environment)

    def _documents(self, folder: str) -> list[Json]:
        paths = sorted((self._binaries / folder).glob("*.yaml"))
        return [document for path in paths for document in yaml.safe_load_all(path.read_text()) if document]


def _volcano(shipped: Path, folder: Path, kubeconfig: Path) -> list[Launch]:
    """The chart's configuration has no topology plugin; with it alone `networkTopology` means something."""
    configuration = yaml.safe_load((shipped / "volcano-scheduler.conf").read_text())
    configuration["tiers"][-1]["plugins"].append({"name": "network-topology-aware"})
    path = folder / "volcano-scheduler.conf"
    path.write_text(yaml.safe_dump(configuration))
    scheduling, health, controlling = free_ports(3)
    shared = (f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--enable-healthz=true")
    return [
        Launch(
            "vc-controller-manager",
            (*shared, f"--healthz-address=127.0.0.1:{controlling}"),
            {},
        ),
        Launch(
            "vc-scheduler",
            (
                *shared,
                f"--healthz-address=127.0.0.1:{health}",
                f"--listen-address=127.0.0.1:{scheduling}",
                f"--scheduler-conf={path}",
                f"--cache-dump-dir={folder}",
            ),
            {},
        ),
    ]


def _koordinator(shipped: Path, folder: Path, kubeconfig: Path) -> list[Launch]:
    """The shipped configuration, without leader election: a lease of a stopped one would delay the next."""
    document = yaml.safe_load((shipped / "scheduler-config.yaml").read_text())
    configuration = yaml.safe_load(document["data"]["koord-scheduler-config"])
    topology = {"apiVersion": configuration["apiVersion"], "kind": "CoschedulingArgs", "awareNetworkTopology": True}
    configuration["profiles"][0]["pluginConfig"].append({"name": "Coscheduling", "args": topology})
    configuration["leaderElection"] = {"leaderElect": False}
    configuration["clientConnection"] = {"kubeconfig": str(kubeconfig)}
    path = folder / "koord-scheduler.yaml"
    path.write_text(yaml.safe_dump(configuration))
    plain, secure = free_ports(2)
    arguments = (
        f"--config={path}",
        "--address=127.0.0.1",
        f"--port={plain}",
        "--bind-address=127.0.0.1",
        f"--secure-port={secure}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--enable-network-topology-manager",
    )
    return [Launch("koord-scheduler", arguments, {})]


def _yunikorn(shipped: Path, folder: Path, kubeconfig: Path) -> list[Launch]:
    """No flags: it reads ConfigMaps, and serves HTTP on all addresses at a fixed port."""
    environment = {"KUBECONFIG": str(kubeconfig), "NAMESPACE": _NAMESPACES["yunikorn"]}
    return [Launch("yunikorn", (), environment, confined=True)]


_NAMESPACES = {"volcano": "volcano-system", "koordinator": "koordinator-system", "yunikorn": "yunikorn"}
# The rules that YuniKorn ships make a queue of each namespace, and pay no heed to the queue that an application names.
_YUNIKORN_QUEUES = yaml.safe_dump(
    {
        "partitions": [
            {"name": "default", "queues": [{"name": "root", "submitacl": "*", "queues": [{"name": "default"}]}]}
        ]
    }
)
_LAUNCHES: Mapping[str, Callable[[Path, Path, Path], list[Launch]]] = {
    "volcano": _volcano,
    "koordinator": _koordinator,
    "yunikorn": _yunikorn,
}


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
