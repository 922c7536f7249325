"""Follows a real cluster by watches, and checks the simulator's rules on what they show."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from contextlib import aclosing

import aiohttp
from msgspec.structs import replace

from spinney.api.core import Event, Node, Pod
from spinney.api.meta import Object
from spinney.api.quantity import milli
from spinney.kube.client.client import Client
from spinney.kube.errors import ApiError, ConnectionLost
from spinney.sim.faults.invariants import ALWAYS
from spinney.sim.faults.invariants_at_rest import AT_REST
from spinney.sim.faults.observed import KINDS, Observed

LOST = (ApiError, ConnectionLost, aiohttp.ClientError, OSError, TimeoutError)
# Nobody acts on these: they do not keep a cluster from being at rest.
_NOISE = (Event, Node)
_PAUSE = 0.2
# Owners of other kinds, such as ReplicaSets, are not seen.
_WATCHED = {kind.resource.kind for kind in KINDS}


class Live(Observed):
    """What watches show; a new list replaces all objects of a kind at once."""

    def __init__(self) -> None:
        super().__init__()
        self._offered: dict[str, dict[str, str]] = {}

    def put(self, item: Object, owners: Iterable[str] = ()) -> None:
        super().put(self._as_it_was_largest(item) if isinstance(item, Node) else item, owners)

    def _as_it_was_largest(self, node: Node) -> Node:
        """A kubelet that starts again offers no GPUs until its device plugin has registered; pods keep theirs."""
        offered = self._offered.setdefault(node.name, {})
        for resource, amount in node.status.allocatable.items():
            if milli(amount) > milli(offered.get(resource, "0")):
                offered[resource] = amount
        return replace(node, status=replace(node.status, allocatable=dict(offered)))

    def drop(self, item: Object) -> None:
        self._objects[type(item)].pop(item.key, None)
        self.everything.pop(item.uid, None)

    def replace(self, kind: type[Object], items: list[Object]) -> None:
        for old in list(self.of(kind)):
            self.drop(old)
        for item in items:
            self.put(item, _owners(item))


class Observer:
    """Watches every kind that the rules look at."""

    def __init__(self, client: Client) -> None:
        self.seen = Live()
        self.violations: dict[str, str] = {}
        self.checks: Counter[str] = Counter()
        self.events = 0
        self._client = client
        self._last = 0.0
        self._listed = {kind: asyncio.Event() for kind in KINDS}
        self._tasks = [asyncio.ensure_future(self._follow(kind)) for kind in KINDS]

    async def ready(self) -> None:
        """Wait until every kind was listed."""
        for listed in self._listed.values():
            await listed.wait()

    async def close(self) -> None:
        """End the watches."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def settled(self, quiet: float, patience: float) -> list[str]:
        """Wait until nothing changes and no rule for clusters at rest is broken; what is broken when patience ends."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        while True:
            is_quiet = loop.time() - self._last > quiet
            broken = self._broken_at_rest() if is_quiet else ["it does not come to rest"]
            if not broken or loop.time() > end:
                return broken
            await asyncio.sleep(_PAUSE)

    def _broken_at_rest(self) -> list[str]:
        broken = []
        for rule in AT_REST:
            self.checks[rule.__name__] += 1
            broken += [f"{rule.__name__}: {violation}" for violation in rule(self.seen)]
        return broken

    async def _follow(self, kind: type[Object]) -> None:
        while True:
            try:
                page = await self._client.list(kind)
                self.seen.replace(kind, page.items)
                self._changed(kind)
                self._listed[kind].set()
                await self._watch(kind, page.resource_version)
            except LOST:
                self._listed[kind].clear()
                await asyncio.sleep(_PAUSE)

    async def _watch(self, kind: type[Object], version: str) -> None:
        async with aclosing(self._client.watch(kind, resource_version=version)) as events:  # type: ignore[type-var]
            async for event in events:
                item = event.object
                if item is None:
                    continue
                self.events += 1
                if event.type == "DELETED":
                    self.seen.drop(item)
                else:
                    self.seen.put(item, _owners(item))
                self._changed(kind)
                if isinstance(item, Pod) and item.spec.node_name and event.type != "DELETED":
                    self._check(item)

    def _changed(self, kind: type[Object]) -> None:
        if kind not in _NOISE:
            self._last = asyncio.get_running_loop().time()

    def _check(self, pod: Pod) -> None:
        for rule in ALWAYS:
            self.checks[rule.__name__] += 1
            for violation in rule(self.seen, pod):
                self.violations.setdefault(rule.__name__, violation)


def _owners(item: Object) -> list[str]:
    return [owner.uid for owner in item.metadata.owner_references if owner.kind in _WATCHED]
