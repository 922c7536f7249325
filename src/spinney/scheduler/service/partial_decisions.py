"""Find decisions that were written only in part, so that their requests are deleted and their pods scheduled again."""

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
    """Requests that a scheduler left behind when it stopped while writing.

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
        """The requests that nobody will carry out; again after a while those that could not be deleted."""
        now = asyncio.get_running_loop().time()
        due = [decision for decision, since in self._changed.items() if now >= since + _PATIENCE_SECONDS]
        ours = self._intentions.decisions() if due else set()
        requests = []
        for decision in due:
            if decision in ours:
                continue
            left = [request for request in self._requests.by(_BY_DECISION, decision) if not is_final(request)]
            requests += left
            if left:
                self._changed[decision] = now
            else:
                del self._changed[decision]
        self._wake_later()
        return requests

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
        """Whether all requests of a decision exist, or all that exist are final."""
        requests = self._requests.by(_BY_DECISION, decision)
        return len(requests) >= members or all(is_final(request) for request in requests)

    def _wake_later(self) -> None:
        if self._timer is None and self._changed:
            self._timer = asyncio.get_running_loop().call_later(_PATIENCE_SECONDS, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._wake()
