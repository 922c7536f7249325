"""Who has only just opened a watch is not behind."""

from __future__ import annotations

import pytest

from spinney.api.core import ConfigMap
from spinney.embedded.cluster import Cluster
from tests import make


async def test_a_streaming_list_may_be_longer_than_the_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache fills however many objects there are; only events that pile up afterwards count."""
    monkeypatch.setattr("spinney.embedded.apiserver.read.watch.BACKLOG", 3)
    async with Cluster() as cluster:
        client = cluster.client()
        for index in range(10):
            await client.create(ConfigMap, make.config_map(f"c-{index}"), "default")
        query = [("watch", "true"), ("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
        query += [("allowWatchBookmarks", "true"), ("fieldSelector", "metadata.namespace=default")]
        response = await client.call("GET", "/api/v1/namespaces/default/configmaps", query)
        assert response.stream is not None
        lines = (await anext(response.stream)).splitlines()
        assert sum(b'"ADDED"' in line for line in lines) >= 10
        assert b"initial-events-end" in lines[-1]
        await response.stream.aclose()  # type: ignore[attr-defined]  # a watch, which is an iterator that can be closed
