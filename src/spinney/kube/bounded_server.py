"""An HTTP server on which no client can hold connections for nothing: half-sent, idle, or too many."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

# As kube-apiserver: the headers of a first request, then the time between two requests.
HEADER_SECONDS = 32.0
IDLE_SECONDS = 90.0
# A watch is a connection, and each component has some dozens.
MOST_PER_CLIENT = 1000

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class BoundedServer(web.Server):
    """Answers requests; a connection whose request does not come in time, or beyond the limit of its client, is cut."""

    def __init__(
        self,
        answer: Answer,
        *,
        header_seconds: float = HEADER_SECONDS,
        most_per_client: int = MOST_PER_CLIENT,
        **options: Any,
    ) -> None:
        # As kube-apiserver, a body is never unpacked: a few kilobytes could become gigabytes.
        options = {"auto_decompress": False, "access_log": None, "keepalive_timeout": IDLE_SECONDS, **options}
        super().__init__(self._counted, **options)
        self._answer = answer
        self._header_seconds = header_seconds
        self._most_per_client = most_per_client
        self._clients: dict[RequestHandler, str] = {}
        self._per_client: Counter[str] = Counter()
        self._waiting: dict[RequestHandler, asyncio.TimerHandle] = {}

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Count the connection, and wait for its first request."""
        super().connection_made(handler, transport)
        peer = transport.get_extra_info("peername")
        client = str(peer[0]) if peer else ""
        self._clients[handler] = client
        self._per_client[client] += 1
        if self._per_client[client] > self._most_per_client:
            transport.abort()
            return
        loop = asyncio.get_running_loop()
        self._waiting[handler] = loop.call_later(self._header_seconds, transport.abort)

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Forget the connection."""
        super().connection_lost(handler, exc)
        self._stop_waiting(handler)
        client = self._clients.pop(handler, None)
        if client is not None:
            self._per_client[client] -= 1
            self._per_client += Counter()

    async def _counted(self, request: web.BaseRequest) -> web.StreamResponse:
        self._stop_waiting(request.protocol)
        return await self._answer(request)

    def _stop_waiting(self, handler: RequestHandler) -> None:
        timer = self._waiting.pop(handler, None)
        if timer is not None:
            timer.cancel()
