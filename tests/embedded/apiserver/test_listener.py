"""The listener: no client keeps a connection for nothing."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from spinney.embedded.apiserver.access.credentials import Authority
from spinney.embedded.apiserver.http.listener import Listener
from spinney.embedded.apiserver.server import ApiServer
from spinney.kube.clock import SystemClock

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def listening(
    server: ApiServer, *, header_seconds: float = 30.0, body_seconds: float = 30.0, most_per_client: int = 10
) -> AsyncIterator[Listener]:
    """The server behind sockets, with short patience."""
    authority = Authority(SystemClock().now())
    listener = Listener(
        server,
        authority,
        header_seconds=header_seconds,
        body_seconds=body_seconds,
        most_per_client=most_per_client,
    )
    await listener.start()
    try:
        yield listener
    finally:
        await listener.stop()


async def connected(listener: Listener) -> Streams:
    """A TLS connection."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return await asyncio.open_connection("127.0.0.1", int(listener.url.rpartition(":")[2]), ssl=tls)


async def rest(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection ends."""
    try:
        return await asyncio.wait_for(reader.read(), 60)
    except ConnectionError:
        return b""


async def test_half_sent_headers_stayed_open(server: ApiServer) -> None:
    """A connection whose first request does not come is cut, with nothing sent or half of it."""
    async with listening(server, header_seconds=0.2) as listener:
        silent, _ = await connected(listener)
        half, writer = await connected(listener)
        writer.write(b"GET /version HTTP/1.1\r\nHost: a\r\nAcc")
        assert await rest(silent) == b""
        assert await rest(half) == b""


async def test_a_half_sent_body_stayed_open(server: ApiServer) -> None:
    """A body that does not come in time is answered with 408."""
    async with listening(server, body_seconds=0.2) as listener:
        reader, writer = await connected(listener)
        writer.write(b"POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
        assert b"408" in await reader.readline()


async def test_a_body_that_is_no_chunk(server: ApiServer) -> None:
    """A body that breaks the protocol is a bad request."""
    async with listening(server) as listener:
        reader, writer = await connected(listener)
        writer.write(b"POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
        assert b" 400 " in await reader.readline()


async def version(listener: Listener) -> tuple[bytes, Streams | None]:
    """The first line of an answer, empty where the connection was cut."""
    try:
        reader, writer = await connected(listener)
        writer.write(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
        return await asyncio.wait_for(reader.readline(), 60), (reader, writer)
    except ConnectionError:
        return b"", None


async def test_too_many_connections(server: ApiServer) -> None:
    """One client has so many connections and no more; one that it closes makes room."""
    async with listening(server, most_per_client=2) as listener:
        first, streams = await version(listener)
        second, _kept = await version(listener)
        third, _ = await version(listener)
        assert (b"200" in first, b"200" in second, third) == (True, True, b"")
        assert streams is not None
        streams[1].close()
        while b"200" not in (await version(listener))[0]:
            pass


async def test_a_packed_body_was_unpacked(server: ApiServer) -> None:
    """A few kilobytes that stand for a gigabyte are a body like any other, which is no JSON."""
    packed = gzip.compress(b" " * 100_000_000)
    head = f"POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}"
    async with listening(server) as listener:
        reader, writer = await connected(listener)
        writer.write(f"{head}\r\nContent-Type: application/json\r\n\r\n".encode() + packed)
        # Nobody in particular asks: whatever it is, it was not read as JSON.
        assert (await reader.readline()).split()[1] in (b"400", b"403")
