"""One node of the cluster: its namespaces, container runtime, kubelet and proxy."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path

from spinney.testing.cluster import cgroups, containerd
from spinney.testing.cluster.kubelet import Identity, start_kubelet, start_proxy
from spinney.testing.cluster.namespaces import Namespaces, NodeProgram
from spinney.testing.golang import Unavailable

_START_SECONDS = 300.0


@dataclass(frozen=True)
class Credentials:
    """The kubeconfig files of a node's programs."""

    kubelet: Path
    proxy: Path


class Node:
    """A node that can be started in parts, and whose kubelet can be killed and started again."""

    def __init__(self, namespaces: Namespaces, identity: Identity, binaries: Path, labels: str) -> None:
        self.namespaces = namespaces
        self.identity = identity
        self._binaries = binaries
        self._labels = labels
        self._programs: dict[str, NodeProgram] = {}
        self._credentials: Credentials | None = None

    @property
    def name(self) -> str:
        """Its name in the cluster."""
        return self.identity.name

    def start_runtime(self, pods: str) -> None:
        """Start containerd, and wait until it serves."""
        cgroups.make(self.identity.group)
        program = self._programs["containerd"] = containerd.start(self.namespaces, pods)
        end = time.monotonic() + _START_SECONDS
        while not containerd.answers(self.namespaces):
            if not program.running or time.monotonic() > end:
                raise Unavailable(f"containerd does not start:\n{program.tail()}")
            time.sleep(0.05)

    def join(self, credentials: Credentials) -> None:
        """Start kubelet and kube-proxy."""
        self._credentials = credentials
        self.start_kubelet()
        proxy = self._binaries / "kube-proxy"
        self._programs["kube-proxy"] = start_proxy(self.namespaces, proxy, self.identity, credentials.proxy)

    def start_kubelet(self) -> None:
        """Start the kubelet."""
        if self._credentials is None:
            raise RuntimeError(f"{self.name} has not joined yet")
        binary = self._binaries / "kubelet"
        kubeconfig = self._credentials.kubelet
        self._programs["kubelet"] = start_kubelet(self.namespaces, binary, self.identity, kubeconfig, self._labels)

    def kill_kubelet(self) -> None:
        """End the kubelet at once; its containers run on."""
        self._programs["kubelet"].signal(signal.SIGKILL)

    def problem(self) -> str:
        """The end of the log of a program that has ended by itself, or nothing."""
        for program in self._programs.values():
            if not program.running:
                return f"{program.name} of {self.name} ended:\n{program.tail()}"
        return ""

    def stop(self) -> None:
        """End everything on the node."""
        self.namespaces.stop()
