"""The machine that a node's kubelet sees: with the processors and the memory of those that have GPUs."""

from __future__ import annotations

import re
from pathlib import Path

CPUS = 64
MEMORY_GIB = 512
# What the kubelet reads, and the folders and files that stand in for it; it counts processors, and must not
# find out how they hang together: it would pin pods to some that are not there.
STAND_INS = {
    "/sys/devices/system/cpu": "cpu",
    "/sys/devices/system/node": "node",
    "/proc/meminfo": "meminfo",
}


def write(folder: Path) -> None:
    """Write the stand-ins into a folder."""
    (folder / "node").mkdir(parents=True)
    for number in range(CPUS):
        (folder / "cpu" / f"cpu{number}").mkdir(parents=True)
    real = Path("/proc/meminfo").read_text()
    (folder / "meminfo").write_text(re.sub(r"MemTotal: *\d+", f"MemTotal: {MEMORY_GIB << 20}", real))
