"""Decisions that the caches do not show yet; each counts until an event shows it, or its write fails."""

from __future__ import annotations

from collections.abc import Callable, Collection

from spinney.api.bindrequests import decision_of
from spinney.api.kai import BindRequest
from spinney.api.meta import Key


class Intentions:
    """Binds by pod and evictions by UID; calls `changed` for every pod that they affect."""

    def __init__(self, changed: Callable[[Key], None]) -> None:
        self._changed = changed
        self._binds: dict[Key, BindRequest] = {}
        self._evictions: set[str] = set()

    @property
    def evictions(self) -> Collection[str]:
        """UIDs of pods that are to be evicted."""
        return self._evictions

    def bind_of(self, pod: Key) -> BindRequest | None:
        """The request for a pod that the cache does not show yet."""
        return self._binds.get(pod)

    def decisions(self) -> set[str]:
        """Ids of the decisions whose requests are being written."""
        return {decision_of(request)[0] for request in self._binds.values()}

    def bind(self, pod: Key, request: BindRequest) -> None:
        """Count the pod as placed."""
        self._binds[pod] = request
        self._changed(pod)

    def withdraw_bind(self, pod: Key) -> None:
        """Forget a bind whose write failed."""
        self._binds.pop(pod, None)
        self._changed(pod)

    def evict(self, pod: Key, uid: str) -> None:
        """Count the pod as releasing."""
        self._evictions.add(uid)
        self._changed(pod)

    def withdraw_eviction(self, pod: Key, uid: str) -> None:
        """Forget an eviction that was refused."""
        self._evictions.discard(uid)
        self._changed(pod)

    def bind_seen(self, pod: Key) -> None:
        """Forget a bind that the caches show."""
        self._binds.pop(pod, None)

    def pod_gone(self, pod: Key, uid: str) -> None:
        """Forget everything about a deleted pod."""
        self._binds.pop(pod, None)
        self._evictions.discard(uid)
