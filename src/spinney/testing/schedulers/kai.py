"""KAI's own programs, from a checkout that its own Makefile has built: `SPINNEY_KAI` names its folder."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from spinney.testing.golang import Unavailable

VARIABLE = "SPINNEY_KAI"
# The release that the documentation speaks of; the checkout may be another one.
VERSION = "v0.17.0"
PROGRAMS = ("scheduler", "binder", "podgroupcontroller", "queuecontroller")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def checkout() -> Path:
    """The folder of the checkout, with its programs in `bin`; Unavailable says what is missing."""
    named = os.environ.get(VARIABLE, "")
    if not named:
        raise Unavailable(f"KAI is not served as a module: set {VARIABLE} to a checkout that its Makefile has built")
    folder = Path(named)
    missing = [path for path in (*(program(folder, name) for name in PROGRAMS), crds(folder)) if not path.exists()]
    if missing:
        raise Unavailable(f"{VARIABLE}={named} has no {missing[0].relative_to(folder)}: build it with its Makefile")
    return folder


def program(folder: Path, name: str) -> Path:
    """Where KAI's Makefile puts a program for this machine."""
    machine = platform.machine()
    return folder / "bin" / f"{name}-{_ARCHITECTURES.get(machine, machine)}"


def crds(folder: Path) -> Path:
    """Where KAI's chart keeps its CustomResourceDefinitions."""
    return folder / "deployments" / "kai-scheduler" / "crds"
