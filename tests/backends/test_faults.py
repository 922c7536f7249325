"""A backend that is killed at any write, before or after it reached the server, converges when it runs again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from spinney.api import kai, koordinator, scheduling, volcano
from spinney.api.crd import crds
from spinney.api.meta import Object
from spinney.api.podgang import PodGang
from spinney.embedded.cluster import Cluster
from spinney.kube.client import Client
from spinney.kube.transport import Request, Response, Transport
from tests import make
from tests.backends import live

KINDS: dict[str, tuple[type[Object], list[str]]] = {
    "kai": (kai.PodGroup, ["pg-train-0-"]),
    "default": (scheduling.WorkloadV1alpha1, ["train-0"]),
    "koordinator": (koordinator.PodGroup, ["train-0-master", "train-0-workers"]),
    "volcano": (volcano.PodGroup, ["train-0"]),
}
GROUPS = ("scheduler.grove.io", "grove.io", "scheduling.run.ai", "kai.scheduler", "scheduling.volcano.sh")


class Dying:
    """A wire that is cut at the n-th write: whoever writes gets no answer any more."""

    def __init__(self, transport: Transport, at: int, *, arrives: bool) -> None:
        self._transport, self._left, self._arrives = transport, at, arrives
        self.cut = asyncio.Event()

    async def send(self, request: Request) -> Response:
        if request.method == "GET" or "/events" in request.path:
            return await self._transport.send(request)
        self._left -= 1
        if self._left > 0:
            return await self._transport.send(request)
        if self._left == 0 and self._arrives:
            await self._transport.send(request)
        self.cut.set()
        return await asyncio.get_running_loop().create_future()

    async def close(self) -> None: ...


@pytest.fixture
async def cluster(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    """An embedded cluster that serves what the backends write; who is killed finishes nothing."""
    monkeypatch.setattr("spinney.kube.controller._GRACE_SECONDS", 0.0)
    async with Cluster() as cluster:
        await live.install(cluster.client(), crds([*GROUPS, "topology.volcano.sh", "scheduling.sigs.k8s.io"]))
        yield cluster


@pytest.mark.parametrize("backend", KINDS)
async def test_killed_at_any_write_it_converges_without_duplicates(cluster: Cluster, backend: str) -> None:
    """Its objects, then the gang's status: cut at each of these writes, before it arrives and after."""
    client = cluster.client()
    writes = len(KINDS[backend][1]) + 1
    for number, (at, arrives) in enumerate((at, arrives) for at in range(1, writes + 1) for arrives in (False, True)):
        namespace = f"cut-{number}"
        await client.call("POST", "/api/v1/namespaces", body={"metadata": {"name": namespace}})
        gang = make.gang("train-0", namespace).backend(backend).group("master", 1, pods=0).group("workers", 3, pods=0)
        for assigned in ("uid", "generation"):
            del gang.object["metadata"][assigned]
        await client.create(PodGang, gang.build(), namespace)
        wire = Dying(client.transport, at, arrives=arrives)
        async with live.running(Client(wire, client.chance), backend):
            told = asyncio.create_task(live.told(client, "train-0", namespace, "Synced", 1))
            cut = asyncio.create_task(wire.cut.wait())
            _, pending = await asyncio.wait({told, cut}, return_when=asyncio.FIRST_COMPLETED)
            for each in pending:
                each.cancel()
        async with live.running(client, backend):
            found = await live.told(client, "train-0", namespace, "Synced", 1)
        kind, prefixes = KINDS[backend]
        names = sorted(item["metadata"]["name"] for item in await live.owned(client, kind, found))
        assert len(names) == len(prefixes), f"cut at write {at}, arrived {arrives}: {names}"
        assert all(name.startswith(prefix) for name, prefix in zip(names, prefixes, strict=True))
