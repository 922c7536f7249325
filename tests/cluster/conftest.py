"""The real cluster of this test run: control plane, two kubelets, DNS, fake GPUs, and this checkout's image."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from spinney.api.image import default_image
from spinney.testing.cluster import fake_gpus, prepared, requirements
from spinney.testing.cluster.cluster import RealCluster
from spinney.testing.golang import Unavailable
from tests import data
from tests.cluster.guide import Guide
from tests.cluster.installing import NEXT, RUNTIME_CLASS, Installation
from tests.cluster.team import PLACE
from tests.make import Builder

GPUS = 8
# The first test waits for the cluster, too, and any of them for a machine that does other things.
_SECONDS = 1200
_FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give these tests time: real containers on a busy machine are slow, and only what never happens is to fail."""
    for item in items:
        if item.path.is_relative_to(_FOLDER):
            item.add_marker(pytest.mark.timeout(_SECONDS))


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[RealCluster]:
    """A cluster that the run shares; each test works in namespaces of its own."""
    try:
        requirements.check()
        if not prepared.is_prepared() and "cluster" not in data.REQUIRED:
            data.unavailable("cluster", "the parts of a real cluster are not built: make cluster ARGS=--build")
        archives = prepared.prepare(lambda _: None)
        with RealCluster(f"test-{os.getpid()}", nodes=2) as cluster:
            prepared.load(cluster, archives)
            cluster.wait_until_ready()
            fake_gpus.offer(cluster, GPUS)
            yield cluster
    except Unavailable as error:
        data.unavailable("cluster", str(error))


@pytest.fixture(scope="session")
def installation(real_cluster: RealCluster) -> Installation:
    """Spinney on the cluster, once a test has installed it; the nodes have the image of the next version, too."""
    real_cluster.name_image(default_image(), NEXT)
    real_cluster.apply(RUNTIME_CLASS, Builder("v1", "Namespace", PLACE).build())
    return Installation(real_cluster)


@pytest.fixture(scope="session")
def guide(real_cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Guide:
    """Somebody who reads docs/users/install.md."""
    return Guide(tmp_path_factory.mktemp("reader"), real_cluster.kubeconfig)
