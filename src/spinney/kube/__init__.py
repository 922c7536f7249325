"""Talk to Kubernetes: client, watch caches, controllers, wanted objects and admission webhooks.

Controllers of other packages import from here what `spinney.kube.public` lists. It loads on first use: our own modules
import each other directly, so that a command that needs few of them starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spinney.kube.public import *  # noqa: F403
else:

    def __getattr__(name):
        # Of a submodule the import system asks here first.
        if not name.startswith("_") and find_spec(f"{__name__}.{name}") is None:
            return getattr(import_module(f"{__name__}.public"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
