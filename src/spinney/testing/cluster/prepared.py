"""Everything that a cluster is made of, built once: programs and images."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from spinney.testing import build
from spinney.testing.cluster import programs, requirements
from spinney.testing.cluster.cluster import RealCluster
from spinney.testing.golang import cache_folder
from spinney.testing.images import pause, spinney

_EXAMPLES = ("registry.k8s.io/pause:3.10", "docker.io/training/master:v1.0", "docker.io/training/worker:v1.0")


def is_prepared() -> bool:
    """Whether only the image of this checkout is left to build."""
    return build.built() and programs.built() and any((cache_folder() / "base").glob("*.tar"))


def prepare(say: Callable[[str], None]) -> list[Path]:
    """Build what is missing, and return the archives of the images that nodes get."""
    requirements.check()
    if not is_prepared():
        say("building kubelet, kube-proxy, CoreDNS, helm and a base image; this takes some minutes, once")
    build.ensure()
    programs.node_programs()
    programs.coredns()
    programs.helm()
    say("Spinney's image")
    archive, _ = spinney.write_image(spinney.cached_archives())
    return [pause.pause_archive(), archive]


def load(cluster: RealCluster, archives: Iterable[Path]) -> None:
    """Put images onto the nodes; those of the guide and of its example are ours that waits."""
    for archive in archives:
        cluster.load(archive)
    cluster.name_image(pause.NAME, *_EXAMPLES)
