"""Raw calls to an API server, so that a check can speak of exact codes, bodies, headers and orders of events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from spinney.kube.client.transport import Request, Transport

Json = dict[str, Any]

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
# Long enough for a loaded machine: it bounds a failing check and is not part of any rule.
PATIENCE = {"embedded": 120.0, "real": 120.0}


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    code: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        """The decoded body."""
        return json.loads(self.raw)

    @property
    def message(self) -> str:
        """The message of an error Status."""
        return str(self.body["message"])

    @property
    def warnings(self) -> str:
        """The Warning headers as they came."""
        return self.headers.get("warning", "")

    def ok(self) -> Json:
        """The body, where the call has to have worked."""
        assert 200 <= self.code < 300, f"{self.code}: {self.raw[:2000].decode(errors='replace')}"
        return dict(self.body)

    def refused(self, code: int, reason: str, message: str | None = None) -> Json:
        """The Status body, where the call has to have failed just so."""
        body = dict(self.body)
        assert (self.code, body.get("reason"), body.get("code")) == (code, reason, code), body
        assert (body["kind"], body["apiVersion"], body["status"]) == ("Status", "v1", "Failure")
        if message is not None:
            assert body["message"] == message
        return body


@dataclass
class Api:
    """One user's way to call a server."""

    transport: Transport
    patience: float = PATIENCE["real"]
    headers: dict[str, str] = field(default_factory=dict)

    def with_headers(self, **headers: str) -> Api:
        """The same user, with headers on every call (`accept=`, `impersonate_user=`)."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Api(self.transport, self.patience, {**self.headers, **named})

    async def call(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", **query: Any
    ) -> Answer:
        """One call; `body` is sent as JSON unless it is bytes already."""
        headers = {"accept": "application/json", **self.headers}
        payload = b""
        if body is not None:
            headers.setdefault("content-type", kind)
            payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        pairs = tuple((name, str(value)) for name, value in query.items())
        answer = await self.transport.send(Request(method, path, pairs, headers, payload))
        return Answer(answer.status, dict(answer.headers), answer.body)

    async def get(self, path: str, **query: Any) -> Answer:
        """GET."""
        return await self.call("GET", path, **query)

    async def post(self, path: str, body: Any, **query: Any) -> Answer:
        """POST."""
        return await self.call("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: Any) -> Answer:
        """PUT."""
        return await self.call("PUT", path, body, **query)

    async def delete(self, path: str, options: Any = None, **query: Any) -> Answer:
        """DELETE, with DeleteOptions as the body."""
        return await self.call("DELETE", path, options, **query)

    async def merge(self, path: str, body: Any, **query: Any) -> Answer:
        """PATCH by JSON merge patch."""
        return await self.call("PATCH", path, body, MERGE, **query)

    async def json_patch(self, path: str, *operations: Json, **query: Any) -> Answer:
        """PATCH by JSON patch."""
        return await self.call("PATCH", path, list(operations), JSON_PATCH, **query)

    async def strategic(self, path: str, body: Any, **query: Any) -> Answer:
        """PATCH by strategic merge patch."""
        return await self.call("PATCH", path, body, STRATEGIC, **query)

    async def apply(self, path: str, body: Any, manager: str, **query: Any) -> Answer:
        """PATCH by server-side apply."""
        return await self.call("PATCH", path, body, APPLY, fieldManager=manager, **query)

    @asynccontextmanager
    async def watch(self, path: str, **query: Any) -> AsyncIterator[Watch]:
        """A watch, open until the block ends."""
        pairs = (("watch", "true"), *((name, str(value)) for name, value in query.items()))
        headers = {"accept": "application/json", **self.headers}
        async with asyncio.timeout(self.patience):
            while True:
                answer = await self.transport.send(Request("GET", path, pairs, headers))
                # A server whose cache of a new kind still fills says so: come again.
                if answer.status != 429:
                    break
                await asyncio.sleep(0.05)
        assert answer.stream is not None, answer.body
        try:
            yield Watch(answer.stream, self.patience)
        finally:
            await answer.stream.aclose()  # type: ignore[attr-defined]  # streams are async generators

    async def until(self, path: str, holds: Any, **query: Any) -> Answer:
        """Ask again until the answer is as wanted, for what controllers do in their own time."""
        return await self.repeat(lambda: self.get(path, **query), holds)

    async def repeat(self, act: Callable[[], Awaitable[Answer]], holds: Callable[[Answer], bool]) -> Answer:
        """Act again until the answer is as wanted, for what a server notices in its own time."""
        async with asyncio.timeout(self.patience):
            while True:
                answer = await act()
                if holds(answer):
                    return answer
                await asyncio.sleep(0.05)


class Watch:
    """The events of one watch, in order."""

    def __init__(self, stream: AsyncIterator[bytes], patience: float) -> None:
        self._stream = stream
        self._patience = patience
        self._pending = b""

    async def next(self) -> Json:
        """The next event."""
        async with asyncio.timeout(self._patience):
            while b"\n" not in self._pending:
                self._pending += await anext(self._stream)
        line, _, self._pending = self._pending.partition(b"\n")
        return dict(json.loads(line))

    async def take(self, count: int) -> list[tuple[str, str]]:
        """The next events as (type, name)."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]

    async def ended(self) -> bool:
        """Whether the server closed the stream with nothing more to say."""
        async with asyncio.timeout(self._patience):
            try:
                self._pending += await anext(self._stream)
            except StopAsyncIteration:
                return not self._pending
        return False
