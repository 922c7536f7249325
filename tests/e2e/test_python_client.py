"""The official Python client, on both worlds: create, list, watch, patch, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import kubernetes
import pytest

from tests.worlds import Cluster


@pytest.fixture
async def official(cluster: Cluster) -> Any:
    """The official client, configured by a kubeconfig."""
    return kubernetes.config.new_client_from_config(str(await cluster.kubeconfig()))


async def away(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call the official client, which blocks, from a thread, so that an embedded server can answer it."""
    return await asyncio.to_thread(call, *arguments, **named)


async def test_create_list_delete(official: Any, cluster: Cluster) -> None:
    """Objects are created, read, listed, patched and deleted."""
    namespace = await cluster.namespace()
    core = kubernetes.client.CoreV1Api(official)
    body = kubernetes.client.V1ConfigMap(metadata={"name": "a", "labels": {"x": "y"}}, data={"k": "v"})
    made = await away(core.create_namespaced_config_map, namespace, body)
    assert made.metadata.uid
    listed = await away(core.list_namespaced_config_map, namespace, label_selector="x=y")
    assert [item.metadata.name for item in listed.items] == ["a"]
    patched = await away(core.patch_namespaced_config_map, "a", namespace, {"data": {"k": "w"}})
    assert patched.data == {"k": "w"}
    await away(core.delete_namespaced_config_map, "a", namespace)
    with pytest.raises(kubernetes.client.ApiException) as caught:
        await away(core.read_namespaced_config_map, "a", namespace)
    assert caught.value.status == 404


async def test_watch(official: Any, cluster: Cluster) -> None:
    """A watch streams what happens after a list."""
    namespace = await cluster.namespace()
    core = kubernetes.client.CoreV1Api(official)
    version = (await away(core.list_namespaced_secret, namespace)).metadata.resource_version
    for name in ("a", "b"):
        await away(core.create_namespaced_secret, namespace, {"metadata": {"name": name}})
    await away(core.delete_namespaced_secret, "a", namespace)

    def events() -> list[tuple[str, str]]:
        watch = kubernetes.watch.Watch()
        seen = []
        for event in watch.stream(core.list_namespaced_secret, namespace, resource_version=version, timeout_seconds=30):
            seen.append((event["type"], event["object"].metadata.name))
            if len(seen) == 3:
                watch.stop()
        return seen

    assert await away(events) == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]


async def test_typed_pod(official: Any, cluster: Cluster) -> None:
    """A pod reads back as the client's own type."""
    namespace = await cluster.namespace()
    core = kubernetes.client.CoreV1Api(official)
    container = kubernetes.client.V1Container(name="main", image="busybox")
    spec = kubernetes.client.V1PodSpec(containers=[container], scheduling_gates=[{"name": "example.com/hold"}])
    body = kubernetes.client.V1Pod(metadata={"name": "a"}, spec=spec)
    made = await away(core.create_namespaced_pod, namespace, body)
    assert (made.status.phase, made.spec.scheduling_gates[0].name) == ("Pending", "example.com/hold")


async def test_custom_objects(official: Any, cluster: Cluster) -> None:
    """Custom resources work through the dynamic client, which reads discovery."""
    await cluster.namespace()
    dynamic = await away(kubernetes.dynamic.DynamicClient, official)
    nodes = await away(dynamic.resources.get, api_version="v1", kind="Namespace")
    names = [item.metadata.name for item in (await away(nodes.get)).items]
    assert "kube-system" in names
