"""PodCliqueSets through every backend: chosen, linked, released, and gone without a trace."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from spinney.api import kai, koordinator, scheduling, volcano
from spinney.api.conditions import is_true
from spinney.api.crd import GROUPS, crds
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.meta import Object
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.untyped import untyped
from spinney.backends.component import COMPONENT as BACKENDS
from spinney.backends.component import BackendsConfig
from spinney.grove.component import COMPONENT as GROVE
from spinney.kube.client.client import Client
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from tests import make, waiting, worlds
from tests.backends import live
from tests.waiting import object_until

SCHEDULERS = {
    "default": "",
    "kai": "kai-scheduler",
    "koordinator": "koord-scheduler",
    "volcano": "volcano",
    "yunikorn": "yunikorn",
}
OBJECTS: dict[str, tuple[type[Object], int]] = {
    "default": (scheduling.WorkloadV1alpha1, 1),
    "kai": (kai.PodGroup, 1),
    "koordinator": (koordinator.PodGroup, 2),
    "volcano": (volcano.PodGroup, 1),
}


def operated(client: Client, *only: str) -> AbstractAsyncContextManager[Host]:
    """The operator and some backends at work."""
    config = GROVE.settings() if GROVE.settings else None
    host = Host(client, SystemClock(), [(GROVE, config), (BACKENDS, BackendsConfig(only=only))])
    return waiting.running(host)


def released(backend: str) -> str:
    """The reason that lets a gang's pods go: on 1.35 it does not fit anywhere without nodes."""
    return "DoesNotFitYet" if backend == "default" else "Synced"


def _is_initialized(gang: PodGang | None) -> bool:
    return gang is not None and is_true(gang.status.conditions, "Initialized")


@pytest.mark.parametrize("backend", SCHEDULERS)
async def test_a_set_is_taken_by_its_backend_and_leaves_nothing_behind(cluster: worlds.Cluster, backend: str) -> None:
    """Gang, objects, linked and gated pods; after deletion none of them is left."""
    client = cluster.client()
    await live.install(client, crds(GROUPS))
    namespace = await cluster.namespace()
    spec = {"schedulerName": SCHEDULERS[backend]} if SCHEDULERS[backend] else {}
    pcs = make.pcs("train", namespace).clique("master", 1, **spec).clique("workers", 2, 2, **spec)
    async with operated(client, backend):
        await client.create(PodCliqueSet, pcs.build(), namespace)
        gang = await live.told(client, "train-0", namespace, released(backend), 1)
        assert gang.metadata.labels["grove.io/scheduler-backend"] == backend
        if backend in OBJECTS:
            kind, count = OBJECTS[backend]
            assert len(await live.owned(client, kind, gang)) == count
        # The backend may be done before the operator has made the last pod.
        await object_until(client, PodGang, (namespace, "train-0"), _is_initialized)
        pods = (await client.list(Pod, namespace)).items
        assert len(pods) == 3
        assert {pod.spec.scheduler_name for pod in pods} == {SCHEDULERS[backend] or "default-scheduler"}
        await client.delete(PodCliqueSet, (namespace, "train"))
        await object_until(client, PodCliqueSet, (namespace, "train"), lambda item: item is None)
        await object_until(client, PodGang, (namespace, "train-0"), lambda item: item is None)
        kinds: list[type[Object]] = [PodClique, Pod]
        kinds += [untyped(OBJECTS[backend][0].resource)] if backend in OBJECTS else []
        for kind in kinds:
            for left in (await client.list(kind, namespace)).items:
                await object_until(client, kind, (namespace, left.name), lambda item: item is None)


async def test_an_api_that_is_not_served_is_told_at_once_and_found_when_it_comes(cluster: worlds.Cluster) -> None:
    """The gang does not just hang; once the CRD is there it goes on by itself."""
    if cluster.name == "real":
        pytest.skip("other tests have defined the kind on the shared control plane")
    client = cluster.client()
    await live.install(client, crds(["grove.io", "scheduler.grove.io"]))
    gang = make.gang("train-0").backend("volcano").group("workers", 2, pods=0)
    for assigned in ("uid", "generation"):
        del gang.object["metadata"][assigned]
    async with live.running(client, "volcano"):
        await client.create(PodGang, gang.build(), "default")
        live_gang = await live.told(client, "train-0", "default", "NotServed", 1)
        message = next(
            condition.message for condition in live_gang.status.conditions if condition.type == "BackendReady"
        )
        assert "serves no API of backend volcano (scheduling.volcano.sh/v1beta1" in message
        await live.install(client, crds(["scheduling.volcano.sh"]))
        await live.told(client, "train-0", "default", "Synced", 1)
