"""Server-sent events: what changed, for one reader, as soon as it is known."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from spinney.api.meta import Json, encode
from spinney.api.numbers import whole_number
from spinney.web.board import Board, Delta
from spinney.web.rights import Scope
from spinney.web.rows import RowKind
from spinney.web.visible import WorkloadKinds, visible

# A comment now and then: proxies close silent connections, and a dead one is noticed.
_HEARTBEAT_SECONDS = 15.0


class Stream:
    """Sends one reader the changes of some kinds after a sequence number."""

    def __init__(
        self,
        board: Board,
        kinds: frozenset[RowKind],
        workload_kinds: WorkloadKinds,
        scope: Callable[[], Awaitable[Scope]],
    ) -> None:
        self._board = board
        self._kinds = kinds
        self._workload_kinds = workload_kinds
        self._scope = scope

    async def send(self, response: web.StreamResponse, since: str) -> None:
        """Send until the reader goes; `since` is the last `epoch-seq` that it has, empty for from now on."""
        epoch, _, text = (since or self._board.tag).rpartition("-")
        number = whole_number(text) if epoch == self._board.epoch else None
        seq = -1 if number is None else number
        seen_with = await self._scope()
        await response.write(b"retry: 1000\n\n")
        while True:
            scope = await self._scope()
            # Nothing is awaited from here until the next change is: one that comes meanwhile would be missed.
            deltas = self._board.since(seq)
            if deltas is None or scope != seen_with:
                # Too far behind, or the rights changed: the reader starts over.
                await response.write(b"event: reset\ndata: {}\n\n")
                return
            for delta in deltas:
                await response.write(self._encoded(delta, scope))
                seq = delta.seq
            if not deltas and not await self._changed_in_time():
                await response.write(b": still here\n\n")

    async def _changed_in_time(self) -> bool:
        try:
            async with asyncio.timeout(_HEARTBEAT_SECONDS):
                await self._board.changed()
        except TimeoutError:
            return False
        return True

    def _encoded(self, delta: Delta, scope: Scope) -> bytes:
        who = (scope, self._kinds)
        if who not in delta.encoded:
            delta.encoded[who] = self._encode(delta, scope)
        return delta.encoded[who]

    def _encode(self, delta: Delta, scope: Scope) -> bytes:
        changed: Json = {}
        removed: Json = {}
        for kind in sorted(self._kinds):
            if rows := [row for _, row in visible(delta.changed.get(kind, {}), scope, self._workload_kinds)]:
                changed[kind] = rows
            if keys := [key for key, _ in visible(delta.removed.get(kind, {}), scope, self._workload_kinds)]:
                removed[kind] = keys
        data = encode({"at": delta.at, "seq": delta.seq, "changed": changed, "removed": removed})
        return b"id: %s-%d\ndata: %s\n\n" % (self._board.epoch.encode(), delta.seq, data)
