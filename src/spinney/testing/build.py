"""Builds etcd, the Kubernetes control plane and kubectl from their Go modules, once per version.

`python -m spinney.testing.build [v1.35.4]` prints the folder that holds the binaries.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spinney.testing.golang import Unavailable, cache_folder, environment, find_go

KUBERNETES = "v1.35.4"
ETCD = "v3.6.8"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")


def folder(version: str = KUBERNETES) -> Path:
    """Where the binaries of a version are, or will be."""
    return cache_folder() / "controlplane" / version


def built(version: str = KUBERNETES) -> bool:
    """Whether a build of the version is there."""
    return all((folder(version) / program).exists() for program in PROGRAMS)


def ensure(version: str = KUBERNETES) -> Path:
    """The folder with the binaries, built first where they are not there yet."""
    target = folder(version)
    if built(version):
        return target
    if not re.fullmatch(r"v1\.\d+\.\d+", version):
        raise Unavailable(f"Kubernetes version {version!r} is not of the form v1.35.4")
    target.parent.mkdir(parents=True, exist_ok=True)
    with _lock(target.parent / f".{version}.lock"):
        if not built(version):
            _build(version, target)
    return target


def _build(version: str, target: Path) -> None:
    go = find_go()
    env = environment(go)
    with tempfile.TemporaryDirectory(prefix=f".{version}-", dir=target.parent) as scratch:
        binaries = Path(scratch) / "bin"
        binaries.mkdir()
        _build_etcd(go, env, Path(scratch) / "etcd", binaries)
        _build_kubernetes(go, env, Path(scratch) / "kubernetes", binaries, version)
        shutil.rmtree(target, ignore_errors=True)
        # A rename, so that nobody ever sees half a build.
        os.replace(binaries, target)


def _build_etcd(go: str, env: dict[str, str], module: Path, binaries: Path) -> None:
    _write_module(module, f"require go.etcd.io/etcd/server/v3 {ETCD}\n")
    _run([go, "build", "-mod=mod", "-trimpath", "-o", str(binaries / "etcd"), "go.etcd.io/etcd/server/v3"], module, env)


def _build_kubernetes(go: str, env: dict[str, str], module: Path, binaries: Path, version: str) -> None:
    _write_module(module, f"require k8s.io/kubernetes {version}\n")
    # Kubernetes' own go.mod takes these modules from its source tree; they are published under their own versions too.
    own = _run([go, "list", "-mod=mod", "-m", "-f", "{{.GoMod}}", "k8s.io/kubernetes"], module, env).strip()
    staged = re.findall(r"^\s*(\S+) => \./staging/", Path(own).read_text(), re.MULTILINE)
    published = "v0." + version.removeprefix("v1.")
    replaces = "".join(f"replace {name} => {name} {published}\n" for name in staged)
    _write_module(module, f"require k8s.io/kubernetes {version}\n{replaces}")
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    flags = [
        f"-X {package}.{name}={value}"
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for name, value in values.items()
    ]
    commands = [f"k8s.io/kubernetes/cmd/{program}" for program in PROGRAMS if program != "etcd"]
    linking = ["-ldflags", " ".join(["-s", "-w", *flags])]
    _run([go, "build", "-mod=mod", "-trimpath", *linking, "-o", f"{binaries}/", *commands], module, env)


def _write_module(module: Path, body: str) -> None:
    module.mkdir(exist_ok=True)
    (module / "go.mod").write_text(f"module controlplane\n\ngo 1.25.0\n\n{body}")


def _run(command: list[str], folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=env, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise Unavailable(f"go {command[1]} failed: " + " | ".join(lines[-5:]))
    return done.stdout


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def main(arguments: list[str]) -> int:
    """The command line: build one version and say where it is."""
    version = arguments[0] if arguments else KUBERNETES
    if not built(version):
        print(f"building etcd {ETCD} and Kubernetes {version}; this takes some minutes, once", file=sys.stderr)
    try:
        print(ensure(version))
    except Unavailable as error:
        print(f"no control plane: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
