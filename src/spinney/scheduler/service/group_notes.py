"""Notes on PodGroups of what the scheduler must remember of a gang: when it started, was evicted, became stale."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import structlog

from spinney.api import labels
from spinney.api.kai import PodGroup
from spinney.api.times import rfc3339_micro
from spinney.kube.caches.cache import Cache
from spinney.kube.client.client import Client
from spinney.kube.errors import ApiError, ConnectionLost, NotFound
from spinney.kube.parallel import all_of

_log = structlog.get_logger("spinney.scheduler")

# After this time there is another cycle, which writes a note that was refused.
_RETRY_SECONDS = 5.0


class GroupNotes:
    """Writes the notes of one scheduler."""

    def __init__(self, client: Client, groups: Cache[PodGroup], wake: Callable[[], None]) -> None:
        self._client = client
        self._groups = groups
        self._wake = wake
        # When gangs were evicted whose note was refused: no later cycle decides that again.
        self._missing: dict[str, float] = {}

    async def evicted(self, jobs: Iterable[str], moment: float) -> None:
        """Note evictions that are about to begin, so that a crash after them does not lose when they were."""
        jobs = tuple(jobs)
        for job in jobs:
            # The later one counts.
            self._missing.pop(job, None)
        await all_of([self._write_eviction(job, moment) for job in jobs])

    async def write_missing(self) -> None:
        """Write the notes that were refused."""
        missing, self._missing = self._missing, {}
        await all_of([self._write_eviction(job, moment) for job, moment in missing.items()])

    async def _write_eviction(self, job: str, moment: float) -> None:
        if await self.write(job, labels.LAST_EVICTION, moment):
            return
        self._missing[job] = max(moment, self._missing.get(job, 0.0))

    async def write(self, job: str, annotation: str, moment: float | None) -> bool:
        """Write one moment, or remove it; False where it was refused."""
        namespace, _, name = job.partition("/")
        group = self._groups.get((namespace, name))
        text = rfc3339_micro(datetime.fromtimestamp(moment, UTC)) if moment is not None else None
        if group is None or group.metadata.annotations.get(annotation) == text:
            return True
        try:
            # As plain data: nothing is to go wrong with what comes back.
            await self._client.patch(PodGroup.resource, group.key, {"metadata": {"annotations": {annotation: text}}})
        except NotFound:
            return True
        except (ApiError, ConnectionLost) as error:
            _log.info("podgroup.annotate", namespace=namespace, name=name, error=str(error))
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._wake)
            return False
        return True
