"""An API server at the end of a long wire: every answer and every event takes a while, and each a different one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from spinney.embedded.server import ApiServer
from spinney.kube.chance import Chance
from spinney.kube.clock import Clock
from spinney.kube.transport import Request, Response


class LaggingServer(ApiServer):
    """Takes up to `most` seconds for the way there and as long for the way back, drawn from a seed.

    Components meet here what virtual time hides otherwise: the world moves on while they write, an answer comes after
    the event that tells of it, and one cache is ahead of another.
    """

    def __init__(self, clock: Clock, chance: Chance, *, seed: int, most: float) -> None:
        super().__init__(clock, chance)
        self._lags = Chance(seed)
        self._most = most

    async def handle(self, request: Request) -> Response:
        """As ever, only later; leases excepted, since nobody is meant to lose one."""
        if "/leases" in request.path:
            return await super().handle(request)
        await self._lag()
        response = await super().handle(request)
        if response.stream is None:
            await self._lag()
            return response
        return Response(response.status, response.body, response.headers, self._late(response.stream))

    async def _late(self, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in events:
            await self._lag()
            yield chunk

    async def _lag(self) -> None:
        await asyncio.sleep(self._lags.random() * self._most)
