"""Builds etcd, the Kubernetes control plane and kubectl from their Go modules, once per version.

`python -m spinney.testing.build [v1.35.4]` prints the folder that holds the binaries.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from spinney.testing.golang import Unavailable, cache_folder
from spinney.testing.gomodules import Toolchain, build_once, toolchain, write_module

KUBERNETES = "v1.35.4"
ETCD = "v3.6.8"
_ETCD_SERVER = "go.etcd.io/etcd/server/v3"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")


def folder(version: str = KUBERNETES) -> Path:
    """Where the binaries of a version are, or will be."""
    return cache_folder() / "controlplane" / version


def built(version: str = KUBERNETES) -> bool:
    """Whether a build of the version is there."""
    return all((folder(version) / program).exists() for program in PROGRAMS)


def ensure(version: str = KUBERNETES) -> Path:
    """The folder with the binaries, built first where they are not there yet."""
    if not built(version) and not re.fullmatch(r"v1\.\d+\.\d+", version):
        raise Unavailable(f"Kubernetes version {version!r} is not of the form v1.35.4")
    return build_once(folder(version), lambda: built(version), lambda *folders: _build(version, *folders))


def _build(version: str, scratch: Path, binaries: Path) -> None:
    go = toolchain()
    write_module(scratch / "etcd", {_ETCD_SERVER: ETCD})
    go.build(scratch / "etcd", binaries / "etcd", [_ETCD_SERVER])
    programs = [program for program in PROGRAMS if program != "etcd"]
    build_kubernetes(go, scratch / "kubernetes", binaries, version, programs)


def build_kubernetes(go: Toolchain, module: Path, binaries: Path, version: str, programs: Sequence[str]) -> None:
    """Build some programs of a Kubernetes release, which say its version."""
    replaces = go.kubernetes_replacements(module, version)
    write_module(module, {"k8s.io/kubernetes": version}, replaces)
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    flags = [
        f"-X {package}.{name}={value}"
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for name, value in values.items()
    ]
    go.build(module, binaries, [f"k8s.io/kubernetes/cmd/{program}" for program in programs], flags)


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
