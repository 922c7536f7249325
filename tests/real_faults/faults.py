"""What goes wrong: each fault begins, lasts for a while, and is over."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.real_faults.installation import COMPONENTS, CONTROL_PLANE, KUBELETS, Installation, revive_control_plane

_DOWN_SECONDS = 0.5
# A disk that needs 0.4 s for each of its writes: meanwhile the store does nothing.
_STOPPED_SECONDS, _RUNNING_SECONDS, _SLOW_TIMES = 0.4, 0.1, 16
_FULL_SECONDS = 6.0
_BLOCK = b"\0" * (1 << 20)


@dataclass(frozen=True)
class Fault:
    """One fault by name."""

    name: str
    inject: Callable[[Installation], Awaitable[None]]


def _killed(name: str) -> Fault:
    async def inject(installation: Installation) -> None:
        await installation.crash(name)
        await asyncio.sleep(_DOWN_SECONDS)
        await installation.revive(name)

    return Fault(f"kill -9 {name}", inject)


async def _slow_disk(installation: Installation) -> None:
    pid = installation.plane.pid("etcd")
    for _ in range(_SLOW_TIMES):
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(_STOPPED_SECONDS)
        os.kill(pid, signal.SIGCONT)
        await asyncio.sleep(_RUNNING_SECONDS)


async def _full_disk(installation: Installation) -> None:
    filler = installation.plane.folder / "filler"
    await asyncio.to_thread(_fill, filler)
    await asyncio.sleep(_FULL_SECONDS)
    filler.unlink()
    await revive_control_plane(installation)


def _fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(_BLOCK)


KILLS = tuple(map(_killed, (*COMPONENTS, KUBELETS, *CONTROL_PLANE)))
SLOW_DISK = Fault("slow disk of etcd", _slow_disk)
FULL_DISK = Fault("full disk of etcd", _full_disk)
ALL = (*KILLS, SLOW_DISK, FULL_DISK)


class SmallDisk:
    """A file system of a bounded size, in memory; without the right to mount one, a folder that cannot get full."""

    def __init__(self, folder: Path, megabytes: int = 400) -> None:
        self.folder = folder
        self._size = f"size={megabytes}m"
        self.is_bounded = False

    def __enter__(self) -> SmallDisk:
        command = ["mount", "-t", "tmpfs", "-o", self._size, "tmpfs", str(self.folder)]
        with suppress(OSError):
            self.is_bounded = subprocess.run(command, capture_output=True, check=False).returncode == 0
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_bounded:
            subprocess.run(["umount", "--lazy", str(self.folder)], capture_output=True, check=False)
