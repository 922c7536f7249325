"""Control groups for the pods of each node, made before the kubelet starts and removed after it."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_PARENT = "spinney-cluster"
_CONTROLLERS = ("cpu", "cpuset", "memory", "pids", "io", "hugetlb")


def node_group(cluster: str, node: str) -> str:
    """The control group of a node, as the kubelet names it."""
    return f"/{_PARENT}/{cluster}/{node}"


def make(group: str) -> None:
    """Create a group in every hierarchy of the machine, ready for processes."""
    for hierarchy in _hierarchies():
        path = hierarchy
        for part in group.strip("/").split("/"):
            _delegate(path)
            above, path = path, path / part
            path.mkdir(exist_ok=True)
            # Version 1 gives a new group no processors and no memory nodes, and then refuses processes.
            for name in ("cpuset.cpus", "cpuset.mems"):
                if not _unified() and (path / name).exists():
                    (path / name).write_text((above / name).read_text())


def remove(cluster: str) -> None:
    """Remove a cluster's groups, and what is left in them, once their processes have ended."""
    for hierarchy in _hierarchies():
        _remove(hierarchy / _PARENT / cluster)
        with suppress(OSError):
            (hierarchy / _PARENT).rmdir()


def left(cluster: str) -> list[Path]:
    """The groups of a cluster that are still there."""
    return [path for hierarchy in _hierarchies() if (path := hierarchy / _PARENT / cluster).exists()]


def _remove(top: Path) -> None:
    end = time.monotonic() + 60
    while top.exists() and time.monotonic() < end:
        for folder, _, _ in os.walk(top, topdown=False):
            # Busy for a moment after the last process is gone.
            with suppress(OSError):
                os.rmdir(folder)
        if top.exists():
            time.sleep(0.1)


def _unified() -> bool:
    return (_ROOT / "cgroup.controllers").exists()


def _hierarchies() -> list[Path]:
    if _unified():
        return [_ROOT]
    return [path for path in _ROOT.iterdir() if path.is_dir() and not path.is_symlink() and os.path.ismount(path)]


def _delegate(path: Path) -> None:
    if not _unified():
        return
    offered = (path / "cgroup.controllers").read_text().split()
    wanted = " ".join(f"+{name}" for name in _CONTROLLERS if name in offered)
    (path / "cgroup.subtree_control").write_text(wanted)
