"""Transports: carry a request to an API server, over HTTPS or by a call within the process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Request(msgspec.Struct, frozen=True):
    """A request to the API server. Header names are lower case; `query` is in order and may repeat a name."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = {}
    body: bytes = b""
    # Set by whoever authenticated the caller: the HTTPS front door, or the in-process transport.
    user: User | None = None


class Response(msgspec.Struct, frozen=True):
    """A response: a whole body, or for a watch or a large list a stream of chunks. Closing the iterator ends it."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}
    stream: AsyncIterator[bytes] | None = None


class Transport(Protocol):
    """Carries requests to an API server. Raises `ConnectionLost` if no response arrives."""

    async def send(self, request: Request) -> Response:
        """The server's response, whatever its status."""

    async def close(self) -> None:
        """Close connections."""


class Handler(Protocol):
    """An API server in this process."""

    async def handle(self, request: Request) -> Response:
        """The response to a request."""


class InProcess:
    """A direct call into an API server in this process, as one user."""

    def __init__(self, server: Handler, user: User) -> None:
        self._server = server
        self._user = user

    async def send(self, request: Request) -> Response:
        """Pass the request on with its user; a large list is answered whole."""
        response = await self._server.handle(
            Request(request.method, request.path, request.query, request.headers, request.body, self._user)
        )
        if response.stream is None or any(name == "watch" for name, _ in request.query):
            return response
        body = b"".join([part async for part in response.stream])
        return Response(response.status, body, response.headers)

    async def close(self) -> None:
        """Nothing is held open."""
