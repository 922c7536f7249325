"""Import a command quickly: half of a component's start is imports."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast


def imported(module: str) -> Any:
    """A module of the command line, with all that it needs."""
    with _garbage_collection_off():
        _import_structlog()
        return import_module(module)


@contextmanager
def _garbage_collection_off() -> Iterator[None]:
    """Switch collection off for the block: imports make many objects and hardly any garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _import_structlog() -> None:
    """Structlog imports rich wherever it finds it, for tracebacks that we never print."""
    if "rich" in sys.modules:
        return
    cast("dict[str, Any]", sys.modules)["rich"] = None
    try:
        import_module("structlog")
    finally:
        del sys.modules["rich"]
