"""Gangs that are gone: what they leave behind is deleted here, ahead of Kubernetes' garbage collector.

The collector makes twenty requests a second, for everybody. It stays the net: what is missed here, because nobody ran
or was allowed to, it takes by its owner references.
"""

from __future__ import annotations

from collections.abc import Callable

from spinney.api.meta import Key
from spinney.api.podgang import PodGang
from spinney.backends.sync import Targets
from spinney.kube.caches.cache import Cache, Change


class Departed:
    """Remembers the gangs that were seen to go and left objects of one backend; a UID never comes back."""

    def __init__(self, gangs: Cache[PodGang], targets: Targets, wake: Callable[[str, str], None]) -> None:
        """`gangs` holds those of all backends: one that only lost our label is not gone."""
        self._targets = targets
        self._wake = wake
        self._uids: dict[Key, list[str]] = {}
        gangs.on_change(self._changed)

    def _changed(self, change: Change[PodGang]) -> None:
        gang = change.object
        if change.new is None and self._targets.owned_by(gang.uid):
            self._uids.setdefault((gang.namespace, gang.name), []).append(gang.uid)
            self._wake(gang.namespace, gang.name)

    async def clear(self, key: Key) -> None:
        """Delete what gangs of this name left behind."""
        while left := self._uids.get(key):
            await self._targets.clear(left[0])
            left.pop(0)
        self._uids.pop(key, None)
