"""Exponential backoff for pods whose bind failed, and other nodes first for the next attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from spinney.api.meta import Key

_FIRST_SECONDS = 5.0
_LONGEST_SECONDS = 300.0


@dataclass
class _Failure:
    count: int = 0
    # Not tried at all before the first moment, and only on other nodes before the second.
    rests_until: float = 0.0
    avoids_until: float = 0.0
    nodes: set[str] = field(default_factory=set)


class BindBackoff:
    """Failed binds by pod UID, so that a pod that can never be bound does not block others."""

    def __init__(self, look_again: Callable[[Key], None]) -> None:
        self._look_again = look_again
        self._known: dict[str, _Failure] = {}

    def add(self, pod: Key, uid: str, node: str) -> None:
        """Record that a bind of the pod to the node failed."""
        loop = asyncio.get_running_loop()
        failure = self._known.setdefault(uid, _Failure())
        failure.count += 1
        failure.nodes.add(node)
        pause = min(_FIRST_SECONDS * 2 ** (failure.count - 1), _LONGEST_SECONDS)
        failure.rests_until = loop.time() + pause
        failure.avoids_until = loop.time() + 2 * pause
        self._look_again(pod)
        loop.call_later(pause, self._look_again, pod)
        loop.call_later(2 * pause, self._look_again, pod)

    def forget(self, uid: str) -> None:
        """Forget the failures of a pod that was bound or deleted."""
        self._known.pop(uid, None)

    def active(self, uid: str) -> bool:
        """Whether the backoff has not elapsed yet."""
        failure = self._known.get(uid)
        return failure is not None and asyncio.get_running_loop().time() < failure.rests_until

    def failed_nodes(self, uid: str) -> frozenset[str]:
        """Nodes that the pod failed on, while others are preferred."""
        failure = self._known.get(uid)
        if failure is None or asyncio.get_running_loop().time() >= failure.avoids_until:
            return frozenset()
        return frozenset(failure.nodes)
