"""A stand-in for kubelets on nodes that nothing else runs."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from spinney import initc
from spinney.api.core import Pod
from spinney.kube.caches.cache import Caches, Change
from spinney.kube.client.client import Client, Patch
from spinney.kube.errors import ApiError


class KubeletStandIn:
    """Runs what is bound: pods become ready once the cliques before them are, and those told to go are gone."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._caches = Caches(client)
        self._work: asyncio.Queue[Pod] = asyncio.Queue()
        self._started: set[str] = set()
        self._caches.of(Pod).on_change(self._changed)

    def _changed(self, change: Change[Pod]) -> None:
        if change.new is not None and change.new.spec.node_name:
            self._work.put_nowait(change.new)

    async def run(self) -> None:
        """Act on every change of a bound pod."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._caches.run())
            while True:
                tasks.create_task(self._act(await self._work.get()))

    async def _act(self, pod: Pod) -> None:
        with suppress(ApiError):
            if pod.metadata.deletion_timestamp is not None:
                await self._client.delete(Pod, pod.key, uid=pod.uid, grace_seconds=0)
            elif pod.uid not in self._started:
                self._started.add(pod.uid)
                await self._start(pod)

    async def _start(self, pod: Pod) -> None:
        for container in pod.spec.init_containers:
            if container.name == "grove-initc":
                await initc.program(self._client, pod, container)
        conditions = [{"type": kind, "status": "True"} for kind in ("Initialized", "ContainersReady", "Ready")]
        patch = {"metadata": {"uid": pod.uid}, "status": {"phase": "Running", "conditions": conditions}}
        await self._client.patch(Pod, pod.key, patch, kind=Patch.STRATEGIC, subresource="status")
