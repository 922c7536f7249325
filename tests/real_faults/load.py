"""Users of a cluster: gangs are created, scaled and deleted, and what is refused is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.errors import AlreadyExists, NotFound
from tests import make
from tests.real_faults.observer import LOST

NAMESPACE = "default"
_MOST_SETS = 6
_PAUSE = 0.3


class Load:
    """What users do, from a seed."""

    def __init__(self, client: Client, seed: int, image: str) -> None:
        self._client = client
        self._image = image
        self._chance = Chance(seed)
        self._sets: list[str] = []
        self.done = 0

    async def act(self) -> None:
        """Create a set, scale one or delete one; until it is accepted."""
        dice = self._chance.random()
        if not self._sets or (dice < 0.4 and len(self._sets) < _MOST_SETS):
            name = f"set-{self.done}"
            self._sets.append(name)
            await self._insist(self._client.create, PodCliqueSet, self._gang(name), NAMESPACE)
        elif dice < 0.75:
            name = self._sets[self._below(len(self._sets))]
            replicas = 1 + self._below(3)
            await self._insist(self._client.patch, PodCliqueSet, (NAMESPACE, name), {"spec": {"replicas": replicas}})
        else:
            name = self._sets.pop(self._below(len(self._sets)))
            await self._insist(self._client.delete, PodCliqueSet, (NAMESPACE, name))
        self.done += 1

    async def delete_all(self) -> None:
        """Delete every set."""
        while self._sets:
            await self._insist(self._client.delete, PodCliqueSet, (NAMESPACE, self._sets.pop()))

    async def _insist(self, call: Callable[..., Awaitable[object]], *arguments: object) -> None:
        while True:
            try:
                with suppress(AlreadyExists, NotFound):
                    await asyncio.wait_for(call(*arguments), 20)
                return
            except LOST:
                await asyncio.sleep(_PAUSE)

    def _gang(self, name: str) -> Json:
        builder = make.pcs(name, NAMESPACE)
        for clique in "ab"[: 1 + self._below(2)]:
            count = 1 + self._below(4)
            limits = {"limits": {"nvidia.com/gpu": str(1 + self._below(2))}}
            containers = [{"name": "main", "image": self._image, "resources": limits}]
            builder = builder.clique(clique, count, schedulerName="kai-scheduler", containers=containers)
        return builder.build()

    def _below(self, limit: int) -> int:
        return int(self._chance.random() * limit)
