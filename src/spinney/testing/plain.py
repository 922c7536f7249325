"""The bare wire to an API server: sends requests and returns answers, without retries."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping

import aiohttp
from yarl import URL

from spinney.kube.client.transport import Request, Response
from spinney.kube.errors import ConnectionLost


class Plain:
    """HTTPS as one user, for tests that assert on exact answers; components use the transport with retries."""

    def __init__(self, url: str, context: ssl.SSLContext, headers: Mapping[str, str] | None = None) -> None:
        self._url = url
        self._context = context
        self._headers = dict(headers or {})
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Request) -> Response:
        """The server's answer; a watch comes back as a stream."""
        session = self._open()
        url = URL(self._url + request.path).with_query(request.query)
        headers = {**self._headers, **request.headers}
        try:
            answer = await session.request(request.method, url, headers=headers, data=request.body or None)
            lowered = {name.lower(): ", ".join(answer.headers.getall(name)) for name in answer.headers}
            if answer.status == 200 and ("watch", "true") in request.query:
                return Response(answer.status, headers=lowered, stream=_chunks(answer))
            return Response(answer.status, await answer.read(), lowered)
        except aiohttp.ClientError as error:
            raise ConnectionLost(str(error)) from error

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=self._context, limit=0)
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=60)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=True)
        return self._session


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    finally:
        answer.close()
