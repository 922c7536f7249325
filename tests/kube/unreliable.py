"""A wire that can be cut, slowed and made to lose answers, between a client and any world."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import cast

from spinney.kube.client.transport import Request, Response, Transport
from spinney.kube.errors import ConnectionLost
from tests.kube.fake_server import error


class Unreliable:
    """Passes requests on, except where a test says otherwise."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._cuts: set[asyncio.Event] = set()
        self._answers_to_lose: list[Callable[[Request], bool]] = []
        self._gone = 0
        self._held: asyncio.Event | None = None
        self.sent: list[Request] = []

    def cut(self) -> None:
        """Break every watch that is open."""
        for event in self._cuts:
            event.set()

    def lose_answer(self, method: str, path: str = "") -> None:
        """Let the server act on the next such request, and lose what it says."""
        self._answers_to_lose.append(lambda request: request.method == method and path in request.path)

    def forget(self) -> None:
        """Answer the next watch with 410, as a server that compacted its history does."""
        self._gone += 1

    def hold(self) -> asyncio.Event:
        """Hold all answers but those about leases back until the returned event is set."""
        self._held = asyncio.Event()
        return self._held

    async def send(self, request: Request) -> Response:
        """Pass a request on."""
        self.sent.append(request)
        watching = ("watch", "true") in request.query
        if watching and self._gone and "resourceVersion" in dict(request.query):
            self._gone -= 1
            return error(410, "Expired", "too old resource version")
        response = await self._transport.send(request)
        if self._held is not None and "/leases" not in request.path:
            await self._held.wait()
        for lost in self._answers_to_lose:
            if lost(request):
                self._answers_to_lose.remove(lost)
                raise ConnectionLost("connection reset")
        if response.stream is None:
            return response
        return Response(response.status, response.body, response.headers, self._cuttable(response.stream))

    async def close(self) -> None:
        """Whoever opened the wire closes it."""

    async def _cuttable(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        cut = asyncio.Event()
        self._cuts.add(cut)
        ending = asyncio.create_task(cut.wait())
        try:
            async with aclosing(cast(AsyncGenerator[bytes, None], stream)) as chunks:
                while True:
                    coming = asyncio.ensure_future(anext(chunks))
                    try:
                        await asyncio.wait({coming, ending}, return_when=asyncio.FIRST_COMPLETED)
                    except asyncio.CancelledError:
                        coming.cancel()
                        await asyncio.wait({coming})
                        raise
                    if not coming.done():
                        coming.cancel()
                        await asyncio.wait({coming})
                        raise ConnectionLost("connection reset")
                    try:
                        yield coming.result()
                    except StopAsyncIteration:
                        return
        finally:
            ending.cancel()
            self._cuts.discard(cut)
