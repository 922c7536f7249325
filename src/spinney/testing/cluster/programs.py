"""Builds what a node runs (kubelet, kube-proxy), CoreDNS and helm from their Go modules, once per version."""

from __future__ import annotations

from pathlib import Path

from spinney.testing import build
from spinney.testing.golang import cache_folder
from spinney.testing.gomodules import build_once, toolchain, write_module

NODE_PROGRAMS = ("kubelet", "kube-proxy")
COREDNS = ("github.com/coredns/coredns", "v1.15.0")
HELM = ("helm.sh/helm/v3", "v3.22.0")


def node_programs() -> Path:
    """The folder with kubelet and kube-proxy, built first where they are not there yet."""
    target = cache_folder() / "nodes" / build.KUBERNETES

    def make(scratch: Path, binaries: Path) -> None:
        build.build_kubernetes(toolchain(), scratch / "module", binaries, build.KUBERNETES, NODE_PROGRAMS)

    return build_once(target, lambda: all((target / name).exists() for name in NODE_PROGRAMS), make)


def built() -> bool:
    """Whether all of them are there."""
    nodes = [cache_folder() / "nodes" / build.KUBERNETES / name for name in NODE_PROGRAMS]
    others = [cache_folder() / "coredns" / COREDNS[1] / "coredns", cache_folder() / "helm" / HELM[1] / "helm"]
    return all(path.exists() for path in (*nodes, *others))


def coredns() -> Path:
    """The DNS server that gives Services and pods their names."""
    return _command(COREDNS, COREDNS[0])


def helm() -> Path:
    """The helm command."""
    return _command(HELM, f"{HELM[0]}/cmd/helm")


def _command(source: tuple[str, str], package: str) -> Path:
    module, version = source
    name = package.rsplit("/", 1)[-1]
    target = cache_folder() / name / version

    def make(scratch: Path, binaries: Path) -> None:
        write_module(scratch / "module", {module: version})
        toolchain().build(scratch / "module", binaries / name, [package])

    return build_once(target, (target / name).exists, make) / name
