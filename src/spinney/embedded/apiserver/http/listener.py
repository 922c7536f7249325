"""The HTTPS listener, on loopback, for kubectl and other clients outside this process."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from aiohttp import ClientPayloadError, web
from aiohttp.http_exceptions import HttpProcessingError

from spinney.api.meta import encode
from spinney.embedded.apiserver.access.credentials import Authority
from spinney.embedded.apiserver.errors import Refusal, bad_request, too_large
from spinney.embedded.apiserver.http.router import MAX_BODY
from spinney.embedded.apiserver.server import ApiServer
from spinney.kube.bounded_server import HEADER_SECONDS, MOST_PER_CLIENT, BoundedServer
from spinney.kube.client.transport import Request, Response, User

_HOST = "127.0.0.1"


class Listener:
    """Serves one API server over HTTPS."""

    def __init__(
        self,
        server: ApiServer,
        authority: Authority,
        *,
        header_seconds: float = HEADER_SECONDS,
        body_seconds: float = 60.0,
        most_per_client: int = MOST_PER_CLIENT,
    ) -> None:
        self._server = server
        self._authority = authority
        self._header_seconds = header_seconds
        self._body_seconds = body_seconds
        self._most_per_client = most_per_client
        self._runner: web.ServerRunner | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """Where the server answers."""
        return f"https://{_HOST}:{self._port}"

    async def start(self, port: int = 0) -> None:
        """Listen; port 0 picks a free one."""
        server = BoundedServer(self._answer, header_seconds=self._header_seconds, most_per_client=self._most_per_client)
        self._runner = web.ServerRunner(server)
        await self._runner.setup()
        site = web.TCPSite(self._runner, _HOST, port, ssl_context=self._context(), backlog=512)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """End every watch, then close."""
        self._server.watches.end()
        if self._runner is not None:
            await self._runner.cleanup()

    def _context(self) -> ssl.SSLContext:
        bundle = self._authority.bundle
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=bundle.trusted)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "server.pem")
            path.touch(mode=0o600)
            path.write_text(bundle.certificate + bundle.key)
            context.load_cert_chain(path)
        return context

    async def _answer(self, incoming: web.BaseRequest) -> web.StreamResponse:
        try:
            request = await self._read(incoming)
        except Refusal as refusal:
            return _whole(Response(refusal.code, encode(refusal.body()), {"content-type": "application/json"}))
        response = self._with_audit_id(request, await self._server.handle(request))
        if response.stream is None:
            return _whole(response)
        return await _stream(incoming, response)

    def _with_audit_id(self, request: Request, response: Response) -> Response:
        """The response with an audit ID: the client's own, or a new one."""
        name = request.headers.get("audit-id") or self._server.core.chance.uid()
        return Response(response.status, response.body, {**response.headers, "audit-id": name}, response.stream)

    async def _read(self, incoming: web.BaseRequest) -> Request:
        if (incoming.content_length or 0) > MAX_BODY:
            raise too_large(MAX_BODY)
        body = await self._body(incoming) if incoming.body_exists else b""
        headers: dict[str, str] = {}
        for name, value in incoming.headers.items():
            key = name.lower()
            headers[key] = f"{headers[key]},{value}" if key in headers else value
        path, _, query = incoming.raw_path.partition("?")
        pairs = tuple(parse_qsl(query, keep_blank_values=True))
        return Request(incoming.method, unquote(path), pairs, headers, body, _user(incoming))

    async def _body(self, incoming: web.BaseRequest) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._body_seconds):
                async for part in incoming.content.iter_any():
                    size += len(part)
                    if size > MAX_BODY:
                        raise too_large(MAX_BODY)
                    parts.append(part)
        except TimeoutError:
            raise Refusal(408, "Timeout", "the body of the request did not come in time") from None
        except (ClientPayloadError, HttpProcessingError) as error:
            raise bad_request(f"the body of the request cannot be read: {error}") from None
        return b"".join(parts)


def _user(incoming: web.BaseRequest) -> User | None:
    """The user of a client certificate; a token is left to the server."""
    transport = incoming.transport
    certificate: Any = transport.get_extra_info("peercert") if transport is not None else None
    return _subject(certificate) if certificate else None


def _subject(certificate: Mapping[str, Any]) -> User:
    name, groups = "", []
    for entries in certificate.get("subject", ()):
        for key, value in entries:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    return User(name, (*groups, "system:authenticated"))


def _whole(response: Response) -> web.Response:
    return web.Response(status=response.status, body=response.body, headers=response.headers)


async def _stream(incoming: web.BaseRequest, response: Response) -> web.StreamResponse:
    outgoing = web.StreamResponse(status=response.status, headers=response.headers)
    outgoing.enable_chunked_encoding()
    stream = response.stream
    assert stream is not None
    try:
        await outgoing.prepare(incoming)
        async for chunk in stream:
            await outgoing.write(chunk)
        await outgoing.write_eof()
    except ConnectionError:
        # The client closed the connection.
        outgoing.force_close()
    finally:
        closing = getattr(stream, "aclose", None)
        if closing is not None:
            await closing()
    return outgoing
