"""Files that only their owner may read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def open_private(file: Path) -> Iterator[BinaryIO]:
    """A file to write that nobody else may read, even if others could before."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as opened:
        os.fchmod(opened.fileno(), 0o600)
        if opened.seekable():
            opened.truncate()
        yield opened
