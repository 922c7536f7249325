"""YuniKorn gives up on a gang for good: it is tried again, with new pods under a new application id."""

from __future__ import annotations

import asyncio

from spinney.api import labels
from spinney.api.conditions import is_true
from spinney.api.core import Event
from spinney.api.grove import PodCliqueSet
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.embedded.cluster import Cluster
from tests import make
from tests.backends import kills
from tests.backends.yunikorn import YuniKornStandIn
from tests.virtual_time import virtual


def training(namespace: str) -> make.SetBuilder:
    """One master and three workers, of which two must run."""
    spec = {"schedulerName": "yunikorn"}
    return make.pcs("train", namespace).clique("master", 1, **spec).clique("workers", 3, 2, **spec)


@virtual
async def test_each_attempt_is_a_new_application_until_one_finds_room() -> None:
    """Two attempts time out after fifteen minutes each; the third is placed, and no pod of a dead one is left."""
    made: list[YuniKornStandIn] = []

    def twice_in_vain(cluster: Cluster) -> YuniKornStandIn:
        made.append(YuniKornStandIn(cluster.client(), cluster.clock, refusals=2))
        return made[0]

    async with kills.staged("yunikorn", twice_in_vain) as stage, stage.running():
        await stage.client.create(PodCliqueSet, training("default").build(), "default")
        await asyncio.sleep(2 * 900 + 300)
        gang = await stage.client.get(PodGang, ("default", "train-0"))
        assert gang.metadata.annotations[labels.ATTEMPT] == "3"
        assert is_true(gang.status.conditions, "Scheduled")
        dead, pods = made[0].dead["default"], (await stage.client.list(Pod, "default")).items
        assert len(set(dead)) == 2
        assert [pod.status.phase for pod in pods] == ["Running"] * 4
        assert {pod.metadata.labels[labels.YUNIKORN_APP_ID] for pod in pods} == {f"{dead[0]}-3"}
        events = (await stage.client.list(Event, "default")).items
        messages = {event.message for event in events if event.reason == "Recreated"}
        assert messages == {
            f"backend yunikorn gave up on the gang; attempt {number} begins with new pods" for number in (2, 3)
        }
