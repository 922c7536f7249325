"""Child processes that never outlive the test run, however it ends."""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from spinney.kube.chance import Chance

_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux: the kernel ends the child when its parent is gone
# Loaded before the fork: between fork and exec only the system call itself is safe.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


# Below those that systems give to outgoing connections: of these, one may be taken before the program listens on it.
_PORTS = range(20000, 32000)
_CHANCE = Chance()


class Program:
    """One running program with its log file."""

    def __init__(self, command: list[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.name = Path(command[0]).name
        self.log = log
        with log.open("ab") as output:
            # A session of its own, so that Ctrl-C reaches the test run only, which then stops things in order.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
                preexec_fn=_die_with_parent if _LIBC else None,  # noqa: PLW1509 - only a system call
            )
        atexit.register(self.stop)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def tail(self, lines: int = 15) -> str:
        """The end of its log, for an error message."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def wait(self) -> None:
        """Wait for its end."""
        self._process.wait()

    def kill(self) -> None:
        """End it at once."""
        atexit.unregister(self.stop)
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it: politely, then for sure."""
        atexit.unregister(self.stop)
        if not self.running:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def free_ports(count: int) -> list[int]:
    """Free ports of the loopback interface, outside of the range that the kernel gives to connections."""
    ports: list[int] = []
    with ExitStack() as held:
        while len(ports) < count:
            port = _PORTS.start + int(_CHANCE.random() * len(_PORTS))
            with suppress(OSError):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                ports.append(port)
    return ports


def _die_with_parent() -> None:
    if _LIBC:
        _LIBC.prctl(_DEATH_SIGNAL, signal.SIGKILL)
