"""What a transport carries: a request and its response, over HTTPS or straight into the embedded server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec


@dataclass(frozen=True, slots=True)
class User:
    """Who is asking, once authenticated."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Request(msgspec.Struct, frozen=True):
    """One call to the API server. Header names are lower case; `query` is in order and may repeat a name."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = {}
    body: bytes = b""
    # Set by whoever authenticated the caller: the HTTPS front door, or the in-process transport.
    user: User | None = None


class Response(msgspec.Struct, frozen=True):
    """The answer: a whole body, or for a watch a stream of chunks (closing the iterator ends the watch)."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}
    stream: AsyncIterator[bytes] | None = None


class Transport(Protocol):
    """Carries a request to an API server. Raises `kube.errors.ConnectionLost` where no answer came."""

    async def send(self, request: Request) -> Response:
        """The server's answer, whatever its status."""

    async def close(self) -> None:
        """Let go of connections."""


class Handler(Protocol):
    """An API server in this process."""

    async def handle(self, request: Request) -> Response:
        """The answer to one request."""


class InProcess:
    """A direct call into an API server in this process, as one user."""

    def __init__(self, server: Handler, user: User) -> None:
        self._server = server
        self._user = user

    async def send(self, request: Request) -> Response:
        """Hand the request over with the user it is made for."""
        return await self._server.handle(
            Request(request.method, request.path, request.query, request.headers, request.body, self._user)
        )

    async def close(self) -> None:
        """Nothing is held open."""
