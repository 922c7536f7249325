"""Events about objects; repeats raise a count instead of creating new events."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import structlog

from spinney.api.meta import Json, Object, Resource
from spinney.api.times import rfc3339
from spinney.kube.client.client import Client
from spinney.kube.clock import Clock
from spinney.kube.errors import ApiError, ConnectionLost

EVENT = Resource("v1", "Event", "events")

_log = structlog.get_logger("spinney.kube.controllers.events")

# A series that was silent for so long starts over as a new event; the API server keeps events for an hour.
_SERIES_SECONDS = 3000.0
# Repeats are gathered for so long before the count is written.
_GATHER_SECONDS = 10.0
# How many series are held before old ones are looked for.
_SWEEP_AT = 4096
# The beginning of an event's text that stands for several messages, as client-go writes it.
_COMBINED = "(combined from similar events): "
# So many messages of one object and reason get an event each; all later ones share a "similar" event.
_MOST_MESSAGES = 10
# Writes under way, before further events are dropped.
_MOST_PENDING = 1000


@dataclass(slots=True)
class _Series:
    name: str
    namespace: str
    count: int
    first: datetime
    last: datetime
    written: int = 0


Kind = Literal["Normal", "Warning"]
SeriesKey = tuple[str, str, str, str, str]


class Recorder:
    """Writes events about objects in the background; a repeated event only raises its count.

    An event that cannot be written is logged and dropped: no work waits for events.
    """

    def __init__(self, client: Client, clock: Clock, component: str) -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._series: dict[SeriesKey, _Series] = {}
        self._messages: dict[tuple[str, str], set[str]] = {}
        self._sweep_at = _SWEEP_AT
        self._tasks: set[asyncio.Task[None]] = set()

    def event(
        self, about: Object, type: Kind, reason: str, message: str, annotations: Mapping[str, str] | None = None
    ) -> None:
        """Record an event about an object; annotations are for programs that read it."""
        message = self._bounded(about, reason, message)
        key = (about.resource.kind, about.uid or f"{about.namespace}/{about.name}", type, reason, message)
        now = self._clock.now()
        series = self._series.get(key)
        if series is not None and (now - series.last).total_seconds() < _SERIES_SECONDS:
            series.count += 1
            series.last = now
            if series.count - series.written == 1:
                self._start(self._count_later(series))
            return
        if len(self._tasks) >= _MOST_PENDING:
            _log.warning("event.dropped", reason=reason, object=f"{about.namespace}/{about.name}")
            return
        self._forget_old(now)
        series = _Series(self._name(about), about.namespace or "default", 1, now, now)
        self._series[key] = series
        document = self._document(about, type, reason, message, series)
        if annotations:
            document["metadata"]["annotations"] = dict(annotations)
        self._start(self._create(key, series, document))

    async def flush(self) -> None:
        """Wait until every event recorded so far is written."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _name(self, about: Object) -> str:
        return f"{about.name[:230]}.{self._client.chance.suffix(16)}"

    def _bounded(self, about: Object, reason: str, message: str) -> str:
        messages = self._messages.setdefault((about.uid or about.name, reason), set())
        if message in messages or len(messages) < _MOST_MESSAGES:
            messages.add(message)
            return message
        # The text of the first one too many stands for all, so that readers still learn what happened.
        similar = next((each for each in messages if each.startswith(_COMBINED)), f"{_COMBINED}{message}")
        messages.add(similar)
        return similar

    def _forget_old(self, now: datetime) -> None:
        if len(self._series) < self._sweep_at:
            return
        self._series = {
            key: series for key, series in self._series.items() if (now - series.last).total_seconds() < _SERIES_SECONDS
        }
        # Where most are still young, the next sweep waits until there are twice as many: sweeping stays cheap.
        self._sweep_at = max(_SWEEP_AT, 2 * len(self._series))
        current = {(key[1], key[3]) for key in self._series}
        self._messages = {key: messages for key, messages in self._messages.items() if key in current}

    def _document(self, about: Object, type: Kind, reason: str, message: str, series: _Series) -> Json:
        return {
            "metadata": {"name": series.name, "namespace": series.namespace},
            "involvedObject": {
                "apiVersion": about.resource.api_version,
                "kind": about.resource.kind,
                "name": about.name,
                "namespace": about.namespace,
                "uid": about.uid,
                "resourceVersion": about.metadata.resource_version,
            },
            "type": type,
            "reason": reason,
            "message": message[:1024],
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._component,
            "firstTimestamp": rfc3339(series.first),
            "lastTimestamp": rfc3339(series.last),
            "count": series.count,
        }

    async def _create(self, key: SeriesKey, series: _Series, document: Json) -> None:
        try:
            await self._client.create(EVENT, document, series.namespace)
        except (ApiError, ConnectionLost) as error:
            # A namespace on its way out takes no events; nothing else is worth a retry either.
            _log.info("event.lost", reason=document["reason"], error=str(error))
            self._series.pop(key, None)
            return
        series.written = document["count"]
        if series.count > series.written:
            await self._count_later(series)

    async def _count_later(self, series: _Series) -> None:
        while 0 < series.written < series.count:
            await asyncio.sleep(_GATHER_SECONDS)
            count = series.count
            patch = {"count": count, "lastTimestamp": rfc3339(series.last)}
            try:
                await self._client.patch(EVENT, (series.namespace, series.name), patch)
            except (ApiError, ConnectionLost) as error:
                _log.info("event.lost", name=series.name, error=str(error))
            series.written = count
