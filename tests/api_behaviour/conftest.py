"""Fixtures of the API-behaviour suite: the same checks on both servers; where they differ, ours is wrong."""

from __future__ import annotations

import pytest

from tests.api_behaviour.wire import PATIENCE, Api
from tests.worlds import Cluster


@pytest.fixture
def api(cluster: Cluster) -> Api:
    """The administrator's raw calls."""
    return Api(cluster.transport(), PATIENCE[cluster.name])


@pytest.fixture
async def namespace(cluster: Cluster) -> str:
    """A fresh namespace."""
    return await cluster.namespace()
