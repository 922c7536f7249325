"""The HTTPS server of admission webhooks."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

import msgspec
from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from spinney.kube.admission.review import Reviewer
from spinney.kube.bounded_server import BoundedServer
from spinney.kube.client.credentials import load_certificate

# A review carries the old and the new object, each of up to 3 MiB.
_MOST_BYTES = 8 * 2**20
_READ_SECONDS = 30.0


class WebhookServer:
    """Serves reviews over TLS. `use` sets the certificate, also while it runs."""

    def __init__(self, paths: dict[str, Reviewer]) -> None:
        self._paths = paths
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2

    def use(self, certificate: str, key: str) -> None:
        """Serve new connections with this certificate."""
        load_certificate(self._tls, certificate, key)

    async def serve(self, host: str, port: int, started: Callable[[int], None] = lambda _: None) -> None:
        """Serve until cancelled; `started` is called with the port once it accepts connections."""
        # No router: one dictionary is enough, and faster.
        server = BoundedServer(self._answer, request_factory=_request)
        runner = web.ServerRunner(server, shutdown_timeout=5)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port, ssl_context=self._tls)
            await site.start()
            started(runner.addresses[0][1])
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        reviewer = self._paths.get(request.path)
        if reviewer is None:
            return web.Response(status=404, text=f"no webhook at {request.path}\n")
        if request.method != "POST":
            return web.Response(status=405, text="a webhook takes POST\n")
        try:
            async with asyncio.timeout(_READ_SECONDS):
                review = await request.read()
            body = await reviewer(review)
        except TimeoutError:
            return web.Response(status=408, text="the review did not come in time\n")
        except (msgspec.DecodeError, KeyError, TypeError):
            return web.Response(status=400, text="not an AdmissionReview with a request\n")
        return web.Response(body=body, content_type="application/json")


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_MOST_BYTES)
