"""Generated data about the built-in kinds: schemas, paths, field numbers and columns."""

from __future__ import annotations

import gzip
from importlib.resources import files
from typing import TypeVar

import msgspec

T = TypeVar("T")


def read(name: str, kind: type[T]) -> T:
    """The content of a file in the folder `data`, which `scripts/*_data.py` make."""
    packed = files("spinney.embedded.apiserver").joinpath(f"data/{name}.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(packed), type=kind)
