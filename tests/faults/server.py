"""An API server at the end of a bad wire: every answer and every event takes a while, and some are lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from spinney.embedded.apiserver.server import ApiServer
from spinney.embedded.cluster import ADMIN
from spinney.kube.chance import Chance
from spinney.kube.client.transport import Request, Response
from spinney.kube.clock import Clock
from spinney.kube.errors import ConnectionLost


class RoughServer(ApiServer):
    """Takes up to `lag` seconds for the way there and as long for the way back, drawn from a seed.

    Components meet here what virtual time hides otherwise: the world moves on while they write, an answer comes after
    the event that tells of it, and one cache is ahead of another. Of requests, answers and events the share `losses`
    is lost, and the connection with them. Leases are spared, since nobody is meant to lose one; so is the
    administrator, who looks on.
    """

    def __init__(self, clock: Clock, chance: Chance, *, seed: int, lag: float) -> None:
        super().__init__(clock, chance)
        self._chance = Chance(seed)
        self._lag = lag
        self.losses = 0.0

    async def handle(self, request: Request) -> Response:
        """As ever, only later, or never."""
        if "/leases" in request.path or request.user == ADMIN:
            return await super().handle(request)
        await self._pass()
        response = await super().handle(request)
        if response.stream is None:
            await self._pass()
            return response
        return Response(response.status, response.body, response.headers, self._late(response.stream))

    async def _late(self, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in events:
            await self._pass()
            yield chunk

    async def _pass(self) -> None:
        """One way over the wire."""
        await asyncio.sleep(self._chance.random() * self._lag)
        if self.losses and self._chance.random() < self.losses:
            raise ConnectionLost("connection reset")
