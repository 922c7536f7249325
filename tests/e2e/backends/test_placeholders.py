"""What YuniKorn writes on its placeholder pods reaches the gang that they hold room for."""

from __future__ import annotations

from spinney.api.conditions import find
from spinney.api.meta import Json
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.backends.yunikorn import application_id
from spinney.kube.client.client import Client
from tests import make, worlds
from tests.backends import live
from tests.waiting import object_until


async def test_the_reason_on_placeholders_reaches_the_gang(cluster: worlds.Cluster) -> None:
    """A gang that did not fit said only that its pods' annotations define it."""
    client = cluster.client()
    await live.install(client, live.definitions("grove"))
    namespace = await cluster.namespace()
    async with live.running(client, "yunikorn"):
        gang = await _gang(client, namespace)
        await client.create(Pod, _placeholder("tg-1", gang), namespace)
        refused: Json = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "no GPUs left",
        }
        await client.patch(Pod, (namespace, "tg-1"), {"status": {"conditions": [refused]}}, subresource="status")
        gang_told = await object_until(client, PodGang, (namespace, "train-0"), _quotes_placeholders)
    assert gang_told is not None


async def test_placeholders_of_a_gang_that_runs_are_deleted(cluster: worlds.Cluster) -> None:
    """YuniKorn creates them anew when it restarts: a gang beside it waited for the room that they held for nobody."""
    client = cluster.client()
    await live.install(client, live.definitions("grove"))
    namespace = await cluster.namespace()
    gang = await _gang(client, namespace)
    for name in ("tg-1", "tg-2"):
        await client.create(Pod, _placeholder(name, gang), namespace)
    async with live.running(client, "yunikorn"):
        for name, node in (("a", "node-1"), ("b", "")):
            pod = make.pod(name, namespace).label("grove.io/podgang", "train-0")
            pod.label("grove.io/podclique", "train-0-workers")
            await client.create(Pod, (pod.on(node) if node else pod).build(), namespace)
        # One of the two has no node: their room is still wanted.
        await object_until(client, PodGang, (namespace, "train-0"), _is_synced)
        assert {pod.name for pod in (await client.list(Pod, namespace)).items} == {"a", "b", "tg-1", "tg-2"}
        binding = {"metadata": {"name": "b"}, "target": {"kind": "Node", "name": "node-1"}}
        await client.post(Pod, (namespace, "b"), "binding", binding)
        for name in ("tg-1", "tg-2"):
            await object_until(client, Pod, (namespace, name), lambda pod: pod is None)
    assert {pod.name for pod in (await client.list(Pod, namespace)).items} == {"a", "b"}


async def _gang(client: Client, namespace: str) -> PodGang:
    """A gang of two pods, which do not exist yet."""
    body = make.gang("train-0", namespace).backend("yunikorn").group("workers", 2, pods=0).build()
    for assigned in ("uid", "generation"):
        del body["metadata"][assigned]
    return await client.create(PodGang, body, namespace)


def _placeholder(name: str, gang: PodGang) -> Json:
    holder = make.pod(name, gang.namespace).label("yunikorn.apache.org/app-id", application_id(gang))
    return holder.annotate("internal.yunikorn.apache.org/placeholder", "true").build()


def _is_synced(gang: PodGang | None) -> bool:
    return gang is not None and find(gang.status.conditions, "BackendReady") is not None


def _quotes_placeholders(gang: PodGang | None) -> bool:
    ready = find(gang.status.conditions, "BackendReady") if gang is not None else None
    return ready is not None and ready.message == "0 of 1 placeholders hold room: no GPUs left"
