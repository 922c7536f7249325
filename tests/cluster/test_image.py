"""The image in a real container: not root, read-only, ready at once, and no larger than it has to be."""

from __future__ import annotations

from datetime import datetime

import pytest

from spinney.api.image import default_image
from spinney.testing.cluster.cluster import RealCluster
from spinney.testing.images import base, buildah
from tests.cluster.pods import pod_until, python_pod
from tests.make import Builder, pod

LOCKED_DOWN = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}
LARGEST = 150_000_000
# Imports everything with a compiled part, which an image may have lost, and writes where webhooks' keys go.
PARTS = """
import os, tempfile
import aiohttp, cryptography.x509, grpclib, jsonschema_rs, msgspec, numpy, pynvml, re2, uvloop, yaml
from spinney.cel import expressions
from yaml import CSafeLoader
assert os.getuid() == 65532
# Nobody could write byte code there, and without it a start takes twice as long.
assert all(os.path.exists(each.__cached__) for each in (aiohttp, expressions, numpy))
assert (numpy.ones((3, 3)) @ numpy.ones(3)).sum() == 9
# An image without numpy.ma once let the scheduler fail on its first gang: sets import it when they are used.
assert numpy.isin(numpy.unique([1, 1, 2]), [1]).tolist() == [True, False]
tempfile.NamedTemporaryFile().write(b"key")
print("fine")
"""


@pytest.fixture(scope="module")
def place(real_cluster: RealCluster) -> str:
    """A namespace of the module's own."""
    real_cluster.apply(Builder("v1", "Namespace", "image").build())
    return "image"


async def test_component_is_ready_locked_down(real_cluster: RealCluster, place: str) -> None:
    """A component without root, capabilities or a writable file system becomes ready, here to stand by."""
    container = {
        "name": "main",
        "image": default_image(),
        "args": ["run", "backends", "--health-listen=0.0.0.0:8080"],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1},
        "securityContext": LOCKED_DOWN,
    }
    real_cluster.apply(pod("component", place).spec(containers=[container]).build())
    real_cluster.kubectl("wait", "pod/component", "-n", place, "--for=condition=Ready", "--timeout=600s")
    started_pod = await pod_until(real_cluster, place, "component", "Running")
    started = started_pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    (ready,) = [each for each in started_pod["status"]["conditions"] if each["type"] == "Ready"]
    waited = datetime.fromisoformat(ready["lastTransitionTime"]) - datetime.fromisoformat(started)
    print(f"ready {waited.total_seconds():.0f} s after its container started")
    assert started_pod["status"]["containerStatuses"][0]["restartCount"] == 0


async def test_program_is_the_entry_point(real_cluster: RealCluster, place: str) -> None:
    """Arguments of a container go to the spinney command; every optional part of the image is there."""
    real_cluster.apply(
        pod("version", place)
        .spec(containers=[{"name": "main", "image": default_image(), "args": ["--version"]}], restartPolicy="Never")
        .build(),
        python_pod("parts", place, PARTS, securityContext=LOCKED_DOWN),
    )
    for name in ("version", "parts"):
        await pod_until(real_cluster, place, name, "Succeeded")
    version = default_image().rpartition(":")[2]
    assert version in real_cluster.kubectl("logs", "version", "-n", place)
    assert real_cluster.kubectl("logs", "parts", "-n", place) == "fine\n"


def test_size(real_cluster: RealCluster) -> None:
    """We add at most 150 MB to the base."""
    added = buildah.size(default_image()) - buildah.size(base.base_image())
    assert added <= LARGEST, f"{added / 1e6:.0f} MB"
