"""An installation as processes on the real control plane: each component, and the simulated kubelets."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spinney.kube.client.client import Client
from spinney.services.platform.shard_config import NAMESPACE
from spinney.sim.installation import install_base
from spinney.testing.controlplane import ControlPlane
from spinney.testing.process import Program, free_ports
from tests.real_faults.installation import COMPONENTS, CONTROL_PLANE, KUBELETS

_NODES = 6
_WITH_WEBHOOKS = ("grove", "admission", "podgroup-controller", "queue-controller")
# Short, so that whoever comes after a crash does not wait for long.
_LEASES = ("--lease-duration", "8", "--renew-deadline", "6", "--retry-period", "1")
_LOOK_SECONDS = 0.5
_SPINNEY = str(Path(sys.executable).with_name("spinney"))


@contextmanager
def processes(folder: Path) -> Iterator[Processes]:
    """A control plane in this folder, and an installation beside it that is still to be started."""
    with ControlPlane(folder) as plane:
        plane.start_controllers()
        installation = Processes(plane)
        try:
            yield installation
        finally:
            installation.stop()
            plane.kill()


class Processes:
    """The processes by name."""

    # Simulated kubelets need none.
    image = "busybox"

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._commands = {KUBELETS: ["nodes", "--nodes", str(_NODES), "--gpus", "8", "--racks", "2"]}
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
        self._restarts = 0

    async def start(self, client: Client) -> None:
        """Install the definitions, then start everything at once."""
        await install_base(client)
        for name in self._commands:
            self._start(name)

    async def supervise(self) -> None:
        """Start components again that ended by themselves, as a kubelet does."""
        while True:
            for name, program in self._programs.items():
                if not program.running and name not in self._down:
                    self._restarts += 1
                    self._start(name)
            await asyncio.sleep(_LOOK_SECONDS)

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

    def restarts(self) -> int:
        """How often components ended by themselves."""
        return self._restarts

    def stop(self) -> None:
        """End all processes but those of the control plane."""
        for program in self._programs.values():
            program.kill()

    def _start(self, name: str) -> None:
        command = [_SPINNEY, *self._commands[name], "--kubeconfig", str(self.plane.kubeconfig())]
        self._programs[name] = Program(command, self.plane.folder / f"{name}.log")
