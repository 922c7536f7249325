"""A node's own view of the machine: network, mounts and processes, which all vanish with one process."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spinney.testing.cluster import machine
from spinney.testing.golang import Unavailable
from spinney.testing.process import Program

_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of Linux
# Kubelet and container runtime keep their state below these; on each node they are folders of its own.
_OWN_FOLDERS = ("var/lib", "var/log")
_SETUP = """set -e
mount --make-rshared /
for folder in {folders}; do mkdir -p "{root}/$folder"; mount --bind "{root}/$folder" "/$folder"; done
mount -t tmpfs -o mode=755 tmpfs /run
# Images and containers are in memory: thousands of small files would take longer to delete than all else.
mkdir -p /var/lib/containerd
mount -t tmpfs -o mode=711 tmpfs /var/lib/containerd
{machine}
mkdir -p /run/lock /var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers
ip link set lo up
echo ready > "{root}/ready"
exec sleep infinity
"""


class Namespaces:
    """The network, mount and process namespaces of a node; when its first process ends, all others end with it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        machine.write(root / "machine")
        mounts = [f'mount --bind "{root}/machine/{name}" {path}' for path, name in machine.STAND_INS.items()]
        script = _SETUP.format(root=root, folders=" ".join(_OWN_FOLDERS), machine="\n".join(mounts))
        unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--ipc"]
        self._holder = Program([*unshare, "--propagation=private", "sh", "-c", script], root / "node.log")
        self._programs: list[Program] = []
        self._wait()
        self.pid = _only_child(self._holder.pid)

    def run(self, *command: str) -> str:
        """Run a command in the node and return what it prints."""
        return _output([*self.enter(), *command])

    def run_in_network(self, *command: str) -> str:
        """Run a command in the node's network only: it sees the machine's processes."""
        return _output(["nsenter", f"--target={self.pid}", "--net", "--", *command])

    def enter(self) -> list[str]:
        """The beginning of a command line that runs in the node."""
        return ["nsenter", f"--target={self.pid}", "--net", "--mount", "--pid", "--ipc", "--"]

    def start(self, command: list[str], log: Path) -> Program:
        """Start a command in the node; the program returned is the one that entered it and waits for the command."""
        program = Program([*self.enter(), *command], log)
        self._programs.append(program)
        return program

    def stop(self) -> None:
        """End every process of the node; its mounts and its network go with them."""
        # The first process of the namespace: the kernel waits with its end for that of all others.
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._holder.kill()
        for program in self._programs:
            program.kill()

    def _wait(self) -> None:
        end = time.monotonic() + 120
        while not (self.root / "ready").exists():
            if not self._holder.running or time.monotonic() > end:
                raise Unavailable(f"a node's namespaces cannot be made here: {self._holder.tail(3)}")
            time.sleep(0.02)


class NodeProgram:
    """A program that runs in a node, with its log file."""

    def __init__(self, node: Namespaces, command: list[str], log: Path) -> None:
        self._entering = node.start(command, log)
        self.name = Path(command[0]).name

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self._entering.running

    @property
    def pid(self) -> int:
        """Its process id on the machine: the child of the process that entered the node."""
        return _only_child(self._entering.pid)

    def tail(self, lines: int = 15) -> str:
        """The end of its log, for an error message."""
        return self._entering.tail(lines)

    def signal(self, number: int) -> None:
        """Send it a signal, and wait for its end."""
        if self.running:
            os.kill(self.pid, number)
            self._entering.wait()


@contextmanager
def inside_network(pid: int) -> Iterator[None]:
    """For the block, this thread and the programs that it starts are in the network of a process."""
    with Path("/proc/thread-self/ns/net").open() as own, Path(f"/proc/{pid}/ns/net").open() as other:
        enter_network(other.fileno())
        try:
            yield
        finally:
            enter_network(own.fileno())


def enter_network(namespace: int) -> None:
    """Move this thread into the network of an open namespace file."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _NEW_NETWORK) != 0:
        raise Unavailable(f"a network namespace cannot be entered: {os.strerror(ctypes.get_errno())}")


def _output(command: list[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def _only_child(pid: int) -> int:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.01)
    raise Unavailable(f"process {pid} has started nothing")
