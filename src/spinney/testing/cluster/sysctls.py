"""Settings of the machine's kernel that kubelets change, put back afterwards."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_NAMES = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


def read() -> dict[str, str]:
    """The values as they are now."""
    return {name: path.read_text().strip() for name in _NAMES if (path := Path("/proc/sys") / name).exists()}


def restore(values: dict[str, str]) -> None:
    """Write back what has changed."""
    for name, value in values.items():
        path = Path("/proc/sys") / name
        with suppress(OSError):
            if path.read_text().strip() != value:
                path.write_text(value)
