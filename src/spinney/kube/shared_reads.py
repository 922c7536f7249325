"""Reads that many ask for at a time, such as hundreds of replicas for their set."""

from __future__ import annotations

import asyncio

from spinney.api.meta import Key, Object, ObjectMeta
from spinney.kube.client.client import Client
from spinney.kube.client.flow import Priority

_Read = tuple[type[Object], Key]


class SharedReads:
    """Answers all who ask for an object by one request, which is sent only after the last of them has asked."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # Under way: who asks now wants a newer answer.
        self._sent: dict[_Read, asyncio.Task[ObjectMeta | None]] = {}
        # Sent once the one before it is answered.
        self._next: dict[_Read, asyncio.Task[ObjectMeta | None]] = {}

    async def metadata(self, of: type[Object], key: Key) -> ObjectMeta | None:
        """The metadata of an object at some moment from now on; None where there is none."""
        read = of, key
        if read not in self._next:
            self._next[read] = asyncio.create_task(self._answer(read))
        return await asyncio.shield(self._next[read])

    async def _answer(self, read: _Read) -> ObjectMeta | None:
        try:
            if read in self._sent:
                await asyncio.wait((self._sent[read],))
        finally:
            task = self._next.pop(read)
        self._sent[read] = task
        try:
            # Ahead of the writes that wait for others to be confirmed.
            async with self._client.turn(Priority.REVIEW):
                return await self._client.metadata(*read)
        finally:
            del self._sent[read]
