"""Webhooks never lock a cluster: with every component away, pods that are not ours are created all the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from spinney.api import labels
from spinney.api.core import Pod
from spinney.app.components import load, registered
from spinney.kube.client.client import Client, Patch
from spinney.kube.errors import ApiError
from spinney.kube.manifests import webhook_configurations, webhook_resource
from tests.worlds import Cluster


@asynccontextmanager
async def registered_by_service(client: Client, namespace: str) -> AsyncIterator[None]:
    """Every webhook of every component, at Services that nobody serves."""
    documents = [each for name in registered() for each in webhook_configurations(load(name), namespace)]
    try:
        for document in documents:
            resource = webhook_resource(document["kind"])
            await client.patch(resource, document["metadata"]["name"], document, kind=Patch.APPLY, force=True)
        yield
    finally:
        for document in documents:
            await client.delete(webhook_resource(document["kind"]), document["metadata"]["name"])


async def create(client: Client, namespace: str, name: str, scheduler: str) -> None:
    spec = {"schedulerName": scheduler, "containers": [{"name": "main", "image": "busybox"}]}
    await client.create(Pod, {"metadata": {"name": name}, "spec": spec}, namespace)


async def test_pods_are_created_with_every_component_away(cluster: Cluster) -> None:
    """The pod webhooks refused all pods, those of our own namespace included, so that no component could come back."""
    client, ours, theirs = cluster.client(), await cluster.namespace(), await cluster.namespace()
    async with registered_by_service(client, ours):
        await create(client, ours, "component", "default-scheduler")
        await create(client, ours, "ours", labels.KAI_SCHEDULER)
        await create(client, theirs, "web", "default-scheduler")
        await create(client, theirs, "other", "volcano")
        # What our scheduler would place must not slip past its checks.
        with pytest.raises(ApiError):
            await create(client, theirs, "gpu", labels.KAI_SCHEDULER)
