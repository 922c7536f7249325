"""Files that only their owner may read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def open_private(file: Path) -> Iterator[BinaryIO]:
    """A file to write that nobody else may read, even if others could before."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as opened:
        # Not a pipe or a device: /dev/null is everybody's.
        if stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            os.fchmod(opened.fileno(), 0o600)
            opened.truncate()
        yield opened
