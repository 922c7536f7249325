"""What processes cost the machine, from the kernel's own books."""

from __future__ import annotations

import os
from pathlib import Path


def resident(pids: list[int]) -> int:
    """The bytes that processes hold."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1]) * 1024
    return total


def cpu_seconds(pids: list[int]) -> float:
    """The time that processes have worked."""
    return sum(_worked(pid) for pid in pids)


def _worked(pid: int) -> float:
    fields = _fields(Path(f"/proc/{pid}/stat"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _fields(stat: Path) -> list[str]:
    """What stands after the program's name, which may hold anything."""
    return stat.read_text().rpartition(")")[2].split()


def children() -> dict[int, str]:
    """The processes that this one started, and the names of their programs."""
    return {pid: name for pid, (parent, name) in _processes().items() if parent == os.getpid()}


def descendants() -> dict[int, str]:
    """The processes that this one, or one of those, started, and the names of their programs."""
    processes = _processes()
    pids = {os.getpid()}
    # A parent's number is not always the lower one.
    while more := {pid for pid, (parent, _) in processes.items() if parent in pids and pid not in pids}:
        pids |= more
    return {pid: processes[pid][1] for pid in pids if pid != os.getpid()}


def _processes() -> dict[int, tuple[int, str]]:
    """The parent and the program of every process."""
    processes: dict[int, tuple[int, str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            processes[int(path.parent.name)] = int(_fields(path)[1]), path.with_name("comm").read_text().strip()
        except OSError:
            continue
    return processes
