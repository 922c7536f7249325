"""The real cluster of this test run: control plane, two kubelets, DNS, fake GPUs, and this checkout's image."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from spinney.testing.cluster import fake_gpus, prepared, requirements
from spinney.testing.cluster.cluster import RealCluster
from spinney.testing.golang import Unavailable
from tests import data

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
            for archive in archives:
                cluster.load(archive)
            cluster.wait_until_ready()
            fake_gpus.offer(cluster, GPUS)
            yield cluster
    except Unavailable as error:
        data.unavailable("cluster", str(error))
