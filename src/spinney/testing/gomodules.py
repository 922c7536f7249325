"""Builds Go programs from published modules: a wrapper module, its replacements, and one build at a time."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spinney.testing.golang import Unavailable, environment, find_go


@dataclass(frozen=True)
class Toolchain:
    """Go with its environment."""

    go: str
    env: Mapping[str, str]

    def build(self, module: Path, output: Path, packages: Sequence[str], flags: Sequence[str] = ()) -> None:
        """Compile packages of a wrapper module; a folder as output takes each under its own name."""
        linking = ["-ldflags", " ".join(["-s", "-w", *flags])]
        target = f"{output}/" if output.is_dir() else str(output)
        self._run(["build", "-mod=mod", "-trimpath", *linking, "-o", target, *packages], module)

    def source(self, module: Path, name: str) -> Path:
        """The folder with the source of a module that a wrapper module requires."""
        self._run(["mod", "download", name], module)
        return Path(self._run(["list", "-mod=mod", "-m", "-f", "{{.Dir}}", name], module).strip())

    def manifest(self, module: Path, name: str) -> Path:
        """The go.mod of a module that a wrapper module requires, without its source."""
        return Path(self._run(["list", "-mod=mod", "-m", "-f", "{{.GoMod}}", name], module).strip())

    def kubernetes_replacements(self, module: Path, version: str) -> dict[str, str]:
        """The versions of all modules that Kubernetes takes from its own source tree: they are published too."""
        write_module(module, {"k8s.io/kubernetes": version})
        own = self.manifest(module, "k8s.io/kubernetes").read_text()
        published = "v0." + version.removeprefix("v1.")
        return dict.fromkeys(re.findall(r"^\s*(\S+) => \./staging/", own, re.MULTILINE), published)

    def _run(self, arguments: list[str], folder: Path) -> str:
        command = [self.go, *arguments]
        done = subprocess.run(command, cwd=folder, env=self.env, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise Unavailable(f"go {arguments[0]} failed: " + " | ".join(lines[-5:]))
        return done.stdout


def toolchain(without_sum: Sequence[str] = ()) -> Toolchain:
    """Go, found or installed; `without_sum` names modules that no checksum database knows."""
    go = find_go()
    env = environment(go)
    if without_sum:
        env["GONOSUMDB"] = ",".join(without_sum)
    return Toolchain(go, env)


def write_module(
    module: Path,
    requires: Mapping[str, str],
    replaces: Mapping[str, str] | None = None,
    local: Mapping[str, Path] | None = None,
) -> None:
    """Write a wrapper module: what it requires, and the versions and folders that take the place of others."""
    module.mkdir(parents=True, exist_ok=True)
    lines = [f"require {name} {version}" for name, version in requires.items()]
    lines += [f"replace {name} => {name} {version}" for name, version in (replaces or {}).items()]
    lines += [f"replace {name} => {path}" for name, path in (local or {}).items()]
    (module / "go.mod").write_text("module wrapper\n\ngo 1.25.0\n\n" + "\n".join(lines) + "\n")


def build_once(target: Path, built: Callable[[], bool], build: Callable[[Path, Path], None]) -> Path:
    """Fill a folder once; `build` gets a scratch folder and the folder that becomes the target."""
    if built():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _lock(target.parent / f".{target.name}.lock"):
        if not built():
            with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
                output = Path(scratch) / "output"
                output.mkdir()
                build(Path(scratch), output)
                shutil.rmtree(target, ignore_errors=True)
                # A rename, so that nobody ever sees half a build.
                os.replace(output, target)
    return target


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
