"""What concurrent clients see of the store fits one order of all writes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from spinney.embedded.apiserver.server import ApiServer
from spinney.kube.chance import Chance
from spinney.sim.loop import clock
from tests.embedded.conftest import MAPS, Asker
from tests.virtual_time import virtual

CLIENTS, OPERATIONS, KEYS = 6, 40, 3


@dataclass(frozen=True)
class Operation:
    """One request of one client: from when to when it took, which object it was about, and the version that it saw."""

    start: float
    end: float
    key: str
    # The version that a write made; for a read the version that it returned, 0 for nothing.
    version: int
    wrote: bool
    # The version that an update demanded.
    expected: int = 0


class Historian:
    """Clients that create, update by version, delete and read the same few objects, with random delays."""

    def __init__(self, ask: Asker, seed: int) -> None:
        self._ask = ask
        self._chance = Chance(seed)
        self.history: list[Operation] = []

    async def client(self) -> None:
        """Do some operations one after the other."""
        for _ in range(OPERATIONS):
            key = f"k{int(self._chance.random() * KEYS)}"
            act = (self._read, self._read, self._update, self._create, self._delete)[int(self._chance.random() * 5)]
            start = asyncio.get_running_loop().time()
            await self._delay()
            seen = await act(key)
            await self._delay()
            if seen is not None:
                version, wrote, expected = seen
                end = asyncio.get_running_loop().time()
                self.history.append(Operation(start, end, key, version, wrote, expected))

    async def _delay(self) -> None:
        await asyncio.sleep(self._chance.random())

    async def _read(self, key: str) -> tuple[int, bool, int] | None:
        answer = await self._ask("GET", f"{MAPS}/{key}")
        return (_version(answer.body) if answer.status == 200 else 0), False, 0

    async def _create(self, key: str) -> tuple[int, bool, int] | None:
        answer = await self._ask("POST", MAPS, {"metadata": {"name": key}})
        return (_version(answer.body), True, 0) if answer.status == 201 else None

    async def _update(self, key: str) -> tuple[int, bool, int] | None:
        read = await self._ask("GET", f"{MAPS}/{key}")
        if read.status != 200:
            return None
        await self._delay()
        body = {**read.body, "data": {"n": str(self._chance.random())}}
        answer = await self._ask("PUT", f"{MAPS}/{key}", body)
        return (_version(answer.body), True, _version(read.body)) if answer.status == 200 else None

    async def _delete(self, key: str) -> tuple[int, bool, int] | None:
        await self._ask("DELETE", f"{MAPS}/{key}")
        return None


def _version(document: dict[str, dict[str, str]]) -> int:
    return int(document["metadata"]["resourceVersion"])


@pytest.mark.parametrize("seed", range(8))
@virtual
async def test_every_history_has_an_order(seed: int) -> None:
    """Versions are that order: unique, as old as the requests, and an update follows the version that it read."""
    server = ApiServer(clock(), Chance(1))
    await server.start()
    events = server.store.table("/configmaps").events
    historian = Historian(Asker(server), seed)
    await asyncio.gather(*(historian.client() for _ in range(CLIENTS)))
    history = historian.history
    written = [each.version for each in history if each.wrote]
    assert len(written) == len(set(written)) > CLIENTS
    predecessor = {event.version: event.old.version if event.old else 0 for event in events}
    for each in history:
        if each.wrote and each.expected:
            assert predecessor[each.version] == each.expected, "an update overwrote a version that it had not read"
        # Whoever starts after a write was answered sees it, or something newer.
        newest = max((old.version for old in history if old.key == each.key and old.end <= each.start), default=0)
        if each.version:
            assert each.version >= newest
        else:
            gone = [event for event in events if event.deleted and event.new.name == each.key]
            assert not newest or any(event.version > newest for event in gone)
