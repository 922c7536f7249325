"""What YuniKorn writes on its placeholder pods reaches the gang that they hold room for."""

from __future__ import annotations

from spinney.api.conditions import find
from spinney.api.meta import Json
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.backends.yunikorn import application_id
from tests import make, worlds
from tests.backends import live
from tests.waiting import object_until


async def test_the_reason_on_placeholders_reaches_the_gang(cluster: worlds.Cluster) -> None:
    """A gang that did not fit said only that its pods' annotations define it."""
    client = cluster.client()
    await live.install(client, live.definitions("grove"))
    namespace = await cluster.namespace()
    body = make.gang("train-0", namespace).backend("yunikorn").group("workers", 2, pods=0).build()
    for assigned in ("uid", "generation"):
        del body["metadata"][assigned]
    async with live.running(client, "yunikorn"):
        gang = await client.create(PodGang, body, namespace)
        holder = make.pod("tg-1", namespace).label("yunikorn.apache.org/app-id", application_id(gang)).build()
        holder["metadata"]["annotations"] = {"internal.yunikorn.apache.org/placeholder": "true"}
        await client.create(Pod, holder, namespace)
        refused: Json = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "no GPUs left",
        }
        await client.patch(Pod, (namespace, "tg-1"), {"status": {"conditions": [refused]}}, subresource="status")
        gang_told = await object_until(client, PodGang, (namespace, "train-0"), _quotes_placeholders)
    assert gang_told is not None


def _quotes_placeholders(gang: PodGang | None) -> bool:
    ready = find(gang.status.conditions, "BackendReady") if gang is not None else None
    return ready is not None and ready.message == "0 of 1 placeholders hold room: no GPUs left"
