"""An installation in containers of a real cluster: by the chart, under real kubelets, which start again what dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spinney.kube.client.client import Client
from spinney.testing.cluster import fake_gpus, prepared
from spinney.testing.cluster.cluster import RealCluster
from spinney.testing.controlplane import ControlPlane
from spinney.testing.images import pause
from tests.cluster.installing import NAMESPACE, RUNTIME_CLASS, Installation
from tests.docs.commands import ROOT
from tests.real_faults.installation import CONTROL_PLANE, KUBELETS

_NODES = 2
_GPUS = 8


@contextmanager
def containers(folder: Path) -> Iterator[Containers]:
    """A real cluster whose store is in this folder, and an installation on it that is still to be started."""
    archives = prepared.prepare(print)
    with RealCluster(f"faults-{os.getpid()}", _NODES, print, folder / "plane") as cluster:
        prepared.load(cluster, archives)
        cluster.wait_until_ready()
        fake_gpus.offer(cluster, _GPUS)
        yield Containers(cluster)


class Containers:
    """The containers by the name of their component."""

    image = pause.NAME

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster
        self._kills = 0
        self._restarts_before = self._restarts()

    @property
    def plane(self) -> ControlPlane:
        """The control plane."""
        return self._cluster.plane

    async def start(self, client: Client) -> None:
        """Install the chart with its default values, and wait until everything runs."""
        self._cluster.apply(RUNTIME_CLASS)
        chart = str(ROOT / "deploy" / "chart")
        self._cluster.helm("install", "spinney", chart, "--namespace", NAMESPACE, "--create-namespace")
        await Installation(self._cluster).available()

    async def supervise(self) -> None:
        """Leave that to the kubelets."""

    async def crash(self, name: str) -> None:
        """End a container, both kubelets, or a program of the control plane."""
        if name == KUBELETS:
            for node in self._cluster.nodes:
                node.kill_kubelet()
        elif name in CONTROL_PLANE:
            await asyncio.to_thread(self.plane.crash, name)
        else:
            await asyncio.to_thread(self._kill_containers, name)

    async def revive(self, name: str) -> None:
        """Start kubelets or a program of the control plane again."""
        if name == KUBELETS:
            for node in self._cluster.nodes:
                node.start_kubelet()
        elif name in CONTROL_PLANE:
            await asyncio.to_thread(self._cluster.revive, name)

    def restarts(self) -> int:
        """How often kubelets started a container again that nobody had killed."""
        return self._restarts() - self._restarts_before - self._kills

    def _restarts(self) -> int:
        pods = json.loads(self._cluster.kubectl("get", "pods", "-n", NAMESPACE, "-o", "json"))["items"]
        return sum(each["restartCount"] for pod in pods for each in pod["status"].get("containerStatuses", []))

    def _kill_containers(self, component: str) -> None:
        for process in _processes_of(self._cluster.name, component):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
                self._kills += 1


def _processes_of(cluster: str, component: str) -> Iterator[int]:
    """The first processes of a component's containers, which belong to the groups of the cluster's nodes."""
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            words = (folder / "cmdline").read_text().split("\0")
            is_component = "run" in words and words[words.index("run") + 1] == component
            if is_component and f"/{cluster}/" in (folder / "cgroup").read_text():
                yield int(folder.name)
