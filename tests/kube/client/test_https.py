"""HTTPS: what the transport sends, and how it names what went wrong."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from aiohttp import web

from spinney.kube.client.credentials import ConfigError, StaticToken
from spinney.kube.client.https import Https, connect
from spinney.kube.client.kubeconfig import Server
from spinney.kube.client.transport import Request
from spinney.kube.client.wire import read_lines
from spinney.kube.errors import ConnectionLost, NotSent, Untrusted
from tests.kube.fake_server import Thing
from tests.kube.tls import serving


@asynccontextmanager
async def transport(server: Server) -> AsyncIterator[Https]:
    """A transport that is closed at the end."""
    carrier = Https(server)
    try:
        yield carrier
    finally:
        await carrier.close()


async def test_a_request_arrives_as_it_is() -> None:
    """Method, path, query, headers and body arrive; status, headers and body come back."""
    seen: list[tuple[str, str, str, bytes]] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        seen.append((request.method, request.path_qs, request.headers["authorization"], await request.read()))
        return web.Response(status=409, body=b"{}", headers={"Retry-After": "3"})

    async with serving(handler, StaticToken("t")) as server, transport(server) as carrier:
        query = (("labelSelector", "a in (b,c),d!=e/f"), ("limit", "5"))
        response = await carrier.send(Request("PATCH", "/api/v1/pods", query, {"content-type": "x/y"}, b"body"))
    assert seen[0][0] == "PATCH"
    assert seen[0][1].startswith("/api/v1/pods?labelSelector=a+in+%28b%2Cc%29%2Cd%21%3De%2Ff&limit=5")
    assert seen[0][2:] == ("Bearer t", b"body")
    assert (response.status, response.body, response.headers["retry-after"]) == (409, b"{}", "3")


async def test_a_watch_streams() -> None:
    """A watch hands over what comes as it comes, and lines are put together across chunks."""
    go = asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"a":')
        await go.wait()
        await response.write(b"1}\n{}\n" + b"x" * 300_000 + b"\n")
        return response

    async with serving(handler) as server, transport(server) as carrier:
        response = await carrier.send(Request("GET", "/api/v1/pods", (("watch", "true"),)))
        assert response.stream is not None
        go.set()
        lines = [line async for line in read_lines(response.stream)]
    assert [lines[0], lines[1], len(lines[2])] == [b'{"a":1}', b"{}", 300_000]


async def test_a_silent_watch_is_given_up() -> None:
    """A connection on which nothing comes, not even a bookmark, is taken for dead."""

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.Event().wait()
        return response

    async with serving(handler) as server:
        carrier = Https(server, silence=0.2)

        async def watch() -> None:
            response = await carrier.send(Request("GET", "/api/v1/pods", (("watch", "true"),)))
            assert response.stream is not None
            await anext(response.stream)

        # On a busy machine even the head of the answer may come too late: that is silence too.
        with pytest.raises(ConnectionLost):
            await watch()
        await carrier.close()


async def test_watches_do_not_take_connections_from_requests() -> None:
    """With more watches open than connections for requests, requests still go through."""

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.Response(body=b"{}")
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.Event().wait()
        return response

    async with serving(handler) as server:
        carrier = Https(server, connections=2)
        for _ in range(4):
            await carrier.send(Request("GET", "/api/v1/pods", (("watch", "true"),)))
        assert (await carrier.send(Request("GET", "/version"))).status == 200
        await carrier.close()


async def test_a_lease_gets_through_when_all_places_are_taken() -> None:
    """Requests that hang hold neither the places nor the connections that a lease needs."""
    released = asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if "/leases" not in request.path:
            await released.wait()
        return web.Response(body=b"{}")

    async with serving(handler) as server:
        client = connect(server, at_once=2)
        hanging = [asyncio.create_task(client.call("GET", "/api/v1/pods")) for _ in range(4)]
        await asyncio.sleep(0)
        async with asyncio.timeout(120):
            await client.call("GET", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l")
        assert not any(task.done() for task in hanging)
        released.set()
        await asyncio.gather(*hanging)
        await client.close()


async def test_a_refused_token_is_replaced_once() -> None:
    """On 401 the token is fetched anew and the request made again, once."""

    class Fading:
        def __init__(self) -> None:
            self.tokens = ["old"]

        async def token(self) -> str:
            return self.tokens[-1]

        def refused(self) -> bool:
            self.tokens.append("new")
            return True

    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(status=200 if request.headers["authorization"] == "Bearer new" else 401)

    async with serving(handler, Fading()) as server, transport(server) as carrier:
        assert (await carrier.send(Request("GET", "/version"))).status == 200


async def test_a_credential_program_has_an_outage() -> None:
    """Before the server ever answered, missing credentials are a mistake in the configuration; later, an outage."""

    class Failing:
        def __init__(self) -> None:
            self.works = False

        async def token(self) -> str:
            if self.works:
                return "t"
            raise ConfigError("credential program: exit code 1")

        def refused(self) -> bool:
            return False

    async def handler(_: web.BaseRequest) -> web.Response:
        return web.Response()

    auth = Failing()
    async with serving(handler, auth) as server, transport(server) as carrier:
        with pytest.raises(ConfigError):
            await carrier.send(Request("GET", "/version"))
        auth.works = True
        await carrier.send(Request("GET", "/version"))
        auth.works = False
        with pytest.raises(NotSent):
            await carrier.send(Request("GET", "/version"))


async def test_nobody_there() -> None:
    """Where nothing listens, nothing has happened, and the message names the server."""
    async with serving(_never) as server:
        pass
    async with transport(server) as carrier:
        with pytest.raises(NotSent, match=f"{server.url}: not reachable"):
            await carrier.send(Request("POST", "/api/v1/pods"))


async def test_an_expired_certificate() -> None:
    """A server with an expired certificate is named as such."""
    async with serving(_never, not_after=datetime(2020, 1, 1, tzinfo=UTC)) as server, transport(server) as carrier:
        with pytest.raises(Untrusted, match="certificate has expired"):
            await carrier.send(Request("GET", "/version"))


async def test_an_unknown_authority() -> None:
    """A server whose authority we do not know is not talked to, and not asked again."""
    async with serving(_never) as server:
        stranger = Server(server.url, StaticToken(), ssl.create_default_context())
        client = connect(stranger)
        with pytest.raises(Untrusted, match="certificate is not accepted"):
            await client.get(Thing, "a")
        await client.close()


async def test_an_answer_that_breaks_off() -> None:
    """A connection that dies in the middle leaves the outcome unknown."""

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with serving(handler) as server, transport(server) as carrier:
        with pytest.raises(ConnectionLost) as caught:
            await carrier.send(Request("POST", "/api/v1/pods"))
    assert not isinstance(caught.value, NotSent)


async def _never(_: web.BaseRequest) -> web.StreamResponse:
    raise AssertionError
