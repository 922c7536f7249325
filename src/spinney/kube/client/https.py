"""The HTTPS transport: connections are kept open, and watches have their own."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from importlib.metadata import version
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.credentials import ConfigError
from spinney.kube.client.flow import Flow
from spinney.kube.client.kubeconfig import Server
from spinney.kube.client.transport import Request, Response
from spinney.kube.errors import ConnectionLost, NotSent, Untrusted

# A page of 500 large objects over a slow line still fits; a request that takes longer is as good as lost.
_REQUEST_SECONDS = 60.0
_CONNECT_SECONDS = 10.0
# For leases, which flow control lets through when all places are taken.
_SPARE_CONNECTIONS = 16
# Servers send a bookmark about once a minute; after this long a silent watch is taken for dead.
_SILENCE_SECONDS = 180.0


class Https:
    """Carries requests to one server. Watches never take connections away from requests."""

    def __init__(self, server: Server, connections: int = 64, silence: float = _SILENCE_SECONDS) -> None:
        self._server = server
        self._connections = connections
        self._silence = silence
        # Whether the server ever answered us.
        self._known = False
        self._requests: aiohttp.ClientSession | None = None
        self._watches: aiohttp.ClientSession | None = None

    async def send(self, request: Request) -> Response:
        """The server's response; a rejected token is renewed once."""
        response = await self._once(request)
        if response.status == 401 and self._server.auth.refused():
            response = await self._once(request)
        return response

    async def close(self) -> None:
        """Close connections."""
        for session in (self._requests, self._watches):
            if session is not None:
                await session.close()
        self._requests = self._watches = None

    async def _once(self, request: Request) -> Response:
        watching = ("watch", "true") in request.query
        headers = dict(request.headers)
        token = await self._token()
        if token:
            headers["authorization"] = f"Bearer {token}"
        try:
            answer = await self._session(watching).request(
                request.method,
                self._url(request),
                data=request.body or None,
                headers=headers,
                server_hostname=self._server.tls_name or None,
                proxy=self._server.proxy or None,
                allow_redirects=False,
            )
            self._known = True
            # A header may come several times, as warnings do.
            headers = {name.lower(): ", ".join(answer.headers.getall(name)) for name in answer.headers}
            if watching and answer.status < 400:
                return Response(answer.status, b"", headers, self._chunks(answer))
            return Response(answer.status, await answer.read(), headers)
        except (aiohttp.ClientError, OSError) as error:
            raise self._lost(error) from error

    async def _token(self) -> str:
        try:
            return await self._server.auth.token()
        except ConfigError as error:
            # What worked before will work again: a credential program has its outages, too.
            if self._known:
                raise NotSent(str(error)) from error
            raise

    async def _chunks(self, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        try:
            async for chunk in answer.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise self._lost(error) from error
        finally:
            answer.close()

    def _url(self, request: Request) -> URL:
        query = f"?{urlencode(request.query)}" if request.query else ""
        return URL(self._server.url + request.path + query, encoded=True)

    def _session(self, watching: bool) -> aiohttp.ClientSession:
        if watching:
            if self._watches is None:
                timeout = aiohttp.ClientTimeout(None, sock_connect=_CONNECT_SECONDS, sock_read=self._silence)
                self._watches = self._open(0, timeout)
            return self._watches
        if self._requests is None:
            timeout = aiohttp.ClientTimeout(_REQUEST_SECONDS, sock_connect=_CONNECT_SECONDS)
            self._requests = self._open(self._connections + _SPARE_CONNECTIONS, timeout)
        return self._requests

    def _open(self, limit: int, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=limit, ssl=self._server.tls or True, keepalive_timeout=60)
        return aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            read_bufsize=2**20,
            # Compression costs both sides more than a cluster's network does.
            headers={"user-agent": f"spinney/{version('spinney')}", "accept-encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    def _lost(self, error: Exception) -> ConnectionLost:
        where = self._server.url
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return Untrusted(f"{where}: its certificate is not accepted: {_reason(error.certificate_error)}")
        if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
            return Untrusted(f"{where}: no TLS connection: {_reason(error)}")
        if isinstance(error, aiohttp.ClientConnectorError):
            return NotSent(f"{where}: not reachable: {error.strerror or error}")
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return NotSent(f"{where}: not reachable within {_CONNECT_SECONDS:g} s")
        return ConnectionLost(f"{where}: {str(error) or type(error).__name__}")


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return str(getattr(error, "reason", "") or error)


def connect(
    server: Server,
    *,
    chance: Chance | None = None,
    at_once: int = 64,
    per_second: float = 2000.0,
    burst: int = 4000,
) -> Client:
    """A client for a server over HTTPS, with flow control."""
    flow = Flow(at_once, per_second, burst)
    return Client(Https(server, at_once), chance, flow=flow)
