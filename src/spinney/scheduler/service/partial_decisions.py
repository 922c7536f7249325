"""Decisions of which only a part was written: their requests are taken back, so that their pods are decided anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from spinney.api.bindrequests import decision_of, is_final
from spinney.api.kai import BindRequest
from spinney.kube.caches.cache import Cache, Change
from spinney.scheduler.service.intentions import Intentions
from spinney.scheduler.service.shard import Shard

_BY_DECISION = "scheduler/decision"
# How long a decision is left alone after its last request came or went: watches may be behind.
_PATIENCE_SECONDS = 5.0


class PartialDecisions:
    """Finds what a scheduler left behind that ended while it wrote.

    The binder waits for the whole of a decision. Where a part is missing that nobody is going to write, or whose pod
    went before the others were bound, it would wait for ever.
    """

    def __init__(
        self, requests: Cache[BindRequest], intentions: Intentions, shard: Shard, wake: Callable[[], None]
    ) -> None:
        self._requests = requests
        self._intentions = intentions
        self._shard = shard
        self._wake = wake
        # Incomplete decisions, and when they changed last in the loop's time.
        self._changed: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._requests.index(_BY_DECISION, lambda request: (decision_of(request)[0],))
        self._requests.on_change(self._note)

    def take(self) -> list[BindRequest]:
        """Requests that nobody will ever carry out."""
        now = asyncio.get_running_loop().time()
        due = [decision for decision, since in self._changed.items() if now >= since + _PATIENCE_SECONDS]
        ours = self._intentions.decisions() if due else set()
        found = []
        for decision in due:
            if decision not in ours:
                del self._changed[decision]
                found += [each for each in self._requests.by(_BY_DECISION, decision) if not is_final(each)]
        self._wake_later()
        return found

    def _note(self, change: Change[BindRequest]) -> None:
        decision, members = decision_of(change.object)
        if members <= 1 or not self._shard.holds(change.object):
            return
        if self._is_settled(decision, members):
            self._changed.pop(decision, None)
            return
        self._changed[decision] = asyncio.get_running_loop().time()
        self._wake_later()

    def _is_settled(self, decision: str, members: int) -> bool:
        """Whether all of it is there, or nothing of it waits."""
        there = self._requests.by(_BY_DECISION, decision)
        return len(there) >= members or all(is_final(each) for each in there)

    def _wake_later(self) -> None:
        if self._timer is None and self._changed:
            self._timer = asyncio.get_running_loop().call_later(_PATIENCE_SECONDS, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._wake()
