"""kubectl in a namespace of its own."""

from __future__ import annotations

import pytest

from tests.e2e.kubectl.shell import Run
from tests.worlds import Cluster


@pytest.fixture
async def namespace(cluster: Cluster) -> str:
    """A fresh namespace."""
    return await cluster.namespace()


@pytest.fixture
def ctl(cluster: Cluster, namespace: str) -> Run:
    """kubectl in the test's namespace; it has to succeed, and its output comes back."""

    async def run(*arguments: str, stdin: str = "") -> str:
        ran = await cluster.kubectl("-n", namespace, *arguments, stdin=stdin)
        assert ran.code == 0, f"kubectl {' '.join(arguments)}: {ran.err}"
        return ran.out

    return run
