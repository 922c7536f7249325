"""A server of one test, and a way to ask it that reads like HTTP."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from spinney.embedded.apiserver.server import ApiServer
from spinney.kube.chance import Chance
from spinney.kube.client.transport import Request, User
from spinney.kube.clock import LoopClock

Json = dict[str, Any]
ADMIN = User("admin", ("system:masters", "system:authenticated"))
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"


class Answer:
    """A response, decoded."""

    def __init__(self, status: int, body: Any, headers: Any) -> None:
        self.status, self.body, self.headers = status, body, headers

    def __getitem__(self, key: str) -> Any:
        return self.body[key]

    @property
    def message(self) -> str:
        """The message of an error Status."""
        return str(self.body["message"])


class Asker:
    """Asks one server as one user."""

    def __init__(self, server: ApiServer, user: User | None = ADMIN) -> None:
        self.server, self.user = server, user

    async def __call__(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json", **headers: str
    ) -> Answer:
        """One request; the path may carry a query."""
        path, _, text = path.partition("?")
        query = tuple(tuple(part.split("=", 1)) for part in text.split("&") if part)
        payload = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        sent = {"content-type": kind, "user-agent": "tester/1", **{k.replace("_", "-"): v for k, v in headers.items()}}
        response = await self.server.handle(Request(method, path, query, sent, payload, self.user))  # type: ignore[arg-type]
        decoded = msgspec.json.decode(response.body) if response.body[:1] in (b"{", b"[") else response.body
        return Answer(response.status, decoded, response.headers)

    async def settle(self) -> None:
        """Let what follows from the last write happen."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def watch(self, path: str) -> Any:
        """The stream of a watch."""
        path, _, text = path.partition("?")
        query = (("watch", "true"), *(tuple(part.split("=", 1)) for part in text.split("&") if part))
        response = await self.server.handle(Request("GET", path, query, {}, b"", self.user))  # type: ignore[arg-type]
        assert response.stream is not None
        return response.stream


@pytest.fixture
async def server() -> ApiServer:
    """An empty cluster whose time starts at noon."""
    made = ApiServer(LoopClock(datetime(2026, 1, 1, 12, tzinfo=UTC)), Chance(1))
    await made.start()
    return made


@pytest.fixture
def ask(server: ApiServer) -> Asker:
    """Ask it as an administrator."""
    return Asker(server)
