"""An installation as processes on the real control plane: each component, and the simulated kubelets."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from spinney.kube.client.client import Client
from spinney.services.platform.shard_config import NAMESPACE
from spinney.sim.installation import install_base
from spinney.testing.controlplane import ControlPlane
from spinney.testing.process import Program, free_ports

COMPONENTS = (
    *("grove", "backends", "podgrouper", "podgroup-controller", "queue-controller", "scheduler", "binder"),
    "admission",
)
KUBELETS = "kubelets"
CONTROL_PLANE = ("kube-apiserver", "etcd", "kube-controller-manager")
_WITH_WEBHOOKS = ("grove", "admission", "podgroup-controller", "queue-controller")
# Short, so that whoever comes after a crash does not wait for long.
_LEASES = ("--lease-duration", "8", "--renew-deadline", "6", "--retry-period", "1")
_LOOK_SECONDS = 0.5
_SPINNEY = str(Path(sys.executable).with_name("spinney"))


class Installation:
    """The processes by name; any of them can be ended at once and started again."""

    def __init__(self, plane: ControlPlane, nodes: int) -> None:
        self.plane = plane
        self._commands = {KUBELETS: ["nodes", "--nodes", str(nodes), "--gpus", "8", "--racks", "2"]}
        ports = dict(zip(_WITH_WEBHOOKS, free_ports(len(_WITH_WEBHOOKS)), strict=True))
        for name in COMPONENTS:
            command = ["run", name, "-n", NAMESPACE, *_LEASES]
            if name in ports:
                address = f"127.0.0.1:{ports[name]}"
                command += ["--webhook-url", f"https://{address}", "--webhook-listen", address]
            self._commands[name] = command
        self._programs: dict[str, Program] = {}
        # Ended by a fault, which starts them again itself.
        self._down: set[str] = set()
        # Ended on their own account, such as a leader that lost its lease, and started again.
        self.restarts: list[str] = []

    async def supervise(self) -> None:
        """Start components again that ended by themselves, as a kubelet does."""
        while True:
            for name, program in self._programs.items():
                if not program.running and name not in self._down:
                    self.restarts.append(name)
                    self._start(name)
            await asyncio.sleep(_LOOK_SECONDS)

    async def start(self, client: Client) -> None:
        """Install the definitions, then start everything at once."""
        await install_base(client)
        for name in self._commands:
            self._start(name)

    async def crash(self, name: str) -> None:
        """End a process at once."""
        self._down.add(name)
        if name in CONTROL_PLANE:
            await asyncio.to_thread(self.plane.crash, name)
        else:
            await asyncio.to_thread(self._programs[name].kill)

    async def revive(self, name: str) -> None:
        """Start a process again."""
        if name in CONTROL_PLANE:
            await asyncio.to_thread(self.plane.revive, name)
        else:
            self._start(name)
        self._down.discard(name)

    async def revive_control_plane(self) -> None:
        """Start everything of the control plane again that has ended, the store first."""
        for name in ("etcd", "kube-apiserver", "kube-controller-manager"):
            if not self.plane.is_running(name):
                await self.revive(name)

    def stop(self) -> None:
        """End all processes but those of the control plane."""
        for program in self._programs.values():
            program.kill()

    def _start(self, name: str) -> None:
        command = [_SPINNEY, *self._commands[name], "--kubeconfig", str(self.plane.kubeconfig())]
        self._programs[name] = Program(command, self.plane.folder / f"{name}.log")
