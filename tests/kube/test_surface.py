"""What other packages may import from `spinney.kube`."""

from __future__ import annotations

import subprocess
import sys

from spinney import kube
from spinney.kube import public


def test_the_public_surface_is_pinned() -> None:
    """A name that appears or goes here is a change for every controller that others have written."""
    assert public.__all__ == [
        "After",
        "AlreadyExists",
        "ApiError",
        "Blocked",
        "Cache",
        "Caches",
        "CannotStart",
        "Change",
        "Client",
        "Clock",
        "Component",
        "Condition",
        "Conflict",
        "ConnectionLost",
        "Controller",
        "Drift",
        "Forbidden",
        "Host",
        "Invalid",
        "Json",
        "Key",
        "Metrics",
        "NameTaken",
        "NotFound",
        "Object",
        "Patch",
        "Priority",
        "Recorder",
        "Resource",
        "Rule",
        "Runtime",
        "Step",
        "Struct",
        "SystemClock",
        "Wanted",
        "Webhook",
        "Writer",
        "allowed",
        "changed",
        "condition",
        "connect",
        "controller_reference",
        "find_server",
        "owner_key",
        "plan",
        "plan_pruning",
        "refused",
        "run_controllers",
        "untyped",
    ]
    assert all(getattr(kube, name) is getattr(public, name) for name in public.__all__)


def test_nothing_is_loaded_before_it_is_used() -> None:
    """A command that needs only errors or logs does not pay for TLS servers and clients."""
    code = "import sys; from spinney.kube import clock; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "spinney.kube.clock" in loaded
    assert not {"aiohttp", "cryptography", "spinney.kube.public"} & set(loaded)
