"""What the scheduler saves for its next start: usage of queues, reservations, departures, evictions under way.

One ConfigMap per shard, in the scheduler's own namespace. It is written when something new was decided, and for the use
of queues from time to time; it never grows beyond a fixed number of decisions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from spinney.api.core import ConfigMap
from spinney.api.meta import Json
from spinney.api.times import rfc3339
from spinney.kube.errors import ApiError, ConnectionLost, NotFound
from spinney.kube.runtime import Runtime
from spinney.scheduler.place.reservations import RECORD_KEY, RECORD_SUFFIX, Reservations
from spinney.scheduler.plan import Plan
from spinney.scheduler.service.shard import Shard
from spinney.scheduler.share.usage import UsageRecord
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.departures import FREED_KEY, Departures
from spinney.scheduler.state.tasks import Triple

_log = structlog.get_logger("spinney.scheduler")

_MOST_DECISIONS = 500
# Use of queues is worth a write only so often; what a crash loses is at most this much of it.
_USAGE_SECONDS = 300.0
# Decisions are gathered for a moment: a reclaim evicts many.
_GATHER_SECONDS = 1.0
_UNFINISHED_KEY = "evictions-under-way"


class SavedEviction(msgspec.Struct, frozen=True):
    """An eviction in the saved record."""

    time: str
    action: str
    gang: str
    pods: int
    beneficiary: str = ""


class UnfinishedEvictions(msgspec.Struct, frozen=True):
    """Victims of one decision, which stand or fall together; saved before the first of them is evicted."""

    action: str
    beneficiary: str
    # UIDs of pods.
    victims: tuple[str, ...]


class SavedRecord:
    """The saved record of a shard."""

    def __init__(self, runtime: Runtime, shard: Shard, usage: UsageRecord | None) -> None:
        self._client = runtime.client
        self._namespace = runtime.namespace
        self._name = record_name(shard)
        self.usage = usage
        self.decisions: deque[SavedEviction] = deque(maxlen=_MOST_DECISIONS)
        self.reservations = Reservations(runtime.clock.now().timestamp())
        # Nodes that pods of gangs being updated have left.
        self.freed: Departures = ()
        # Decisions whose evictions are under way; after a start, those that the scheduler before left half done.
        self.unfinished: tuple[UnfinishedEvictions, ...] = ()
        self._saving: asyncio.Task[None] | None = None
        self._usage_written = float("-inf")

    async def load(self) -> None:
        """Load the record of the shard; start a new one if it cannot be read."""
        try:
            record = await self._client.get(ConfigMap, (self._namespace, self._name))
            self.decisions.extend(msgspec.json.decode(record.data.get("decisions", "[]"), type=list[SavedEviction]))
            self.reservations = reservations_in(record.data) or self.reservations
            self.freed = departures_in(record.data)
            stored = record.data.get(_UNFINISHED_KEY, "[]")
            self.unfinished = msgspec.json.decode(stored, type=tuple[UnfinishedEvictions, ...])
            if self.usage is not None and "usage" in record.data:
                self._take_up(msgspec.json.decode(record.data["usage"]))
        except NotFound:
            return
        except (ApiError, ConnectionLost, msgspec.DecodeError, ValueError, TypeError) as error:
            _log.warning("record.unreadable", name=self._name, error=str(error))

    def _take_up(self, stored: Any) -> None:
        assert self.usage is not None
        self.usage.moment = float(stored["moment"])
        self.usage.capacity = _triple(stored["capacity"])
        self.usage.used = {name: _triple(amounts) for name, amounts in stored["used"].items()}

    def record(self, state: State, plan: Plan, now: float) -> None:
        """Record what a cycle decided, and what queues hold."""
        evicted: dict[tuple[str, str, str], int] = {}
        for decision in plan.decisions:
            if decision.kind == "evict":
                key = (decision.action, decision.job, decision.beneficiary)
                evicted[key] = evicted.get(key, 0) + 1
        moment = rfc3339(datetime.fromtimestamp(now, UTC))
        for (action, job, beneficiary), pods in evicted.items():
            self.decisions.append(SavedEviction(moment, action, job, pods, beneficiary))
        usage_is_due = self.usage is not None and now - self._usage_written >= _USAGE_SECONDS
        keeps = plan.reservations is not None and plan.reservations.held != self.reservations.held
        self.reservations = plan.reservations or self.reservations
        freed, self.freed = self.freed, state.departures.remembered(now)
        if evicted or usage_is_due or keeps or freed != self.freed:
            self._save_soon(now)

    async def begin(self, evictions: UnfinishedEvictions) -> None:
        """Save a decision before it is carried out: a crash half-way must not lead to other victims."""
        self.unfinished = (*self.unfinished, evictions)
        await self._save()

    def finish(self, evictions: UnfinishedEvictions) -> None:
        """Forget a decision that was carried out or given up; the next save drops it from the record."""
        self.unfinished = tuple(other for other in self.unfinished if other != evictions)

    def drop_reservation(self, job: str) -> None:
        """Drop the reservation of a gang whose victims may not be evicted."""
        self.reservations = self.reservations.without(job)

    def _save_soon(self, now: float) -> None:
        if self._saving is None or self._saving.done():
            self._usage_written = now
            self._saving = asyncio.create_task(self._gather_and_save())

    async def _gather_and_save(self) -> None:
        await asyncio.sleep(_GATHER_SECONDS)
        await self._save()

    async def _save(self) -> None:
        claims = self.reservations.claims[:_MOST_DECISIONS]
        data = {
            "decisions": msgspec.json.encode(list(self.decisions)).decode(),
            FREED_KEY: msgspec.json.encode(self.freed).decode(),
            _UNFINISHED_KEY: msgspec.json.encode(self.unfinished).decode(),
            RECORD_KEY: msgspec.json.encode(replace(self.reservations, claims=claims)).decode(),
        }
        if self.usage is not None and self.usage.moment is not None:
            stored = {"moment": self.usage.moment, "capacity": self.usage.capacity, "used": self.usage.used}
            data["usage"] = msgspec.json.encode(stored).decode()
        try:
            await self._write({"data": data})
        except (ApiError, ConnectionLost) as error:
            _log.warning("record.not_written", name=self._name, error=str(error))

    async def _write(self, body: Json) -> None:
        try:
            await self._client.patch(ConfigMap, (self._namespace, self._name), body)
        except NotFound:
            await self._client.create(ConfigMap, {"metadata": {"name": self._name}, **body}, self._namespace)


def _triple(amounts: Any) -> Triple:
    cpu, memory, gpus = amounts
    return float(cpu), float(memory), float(gpus)


def record_name(shard: Shard) -> str:
    """The name of a shard's ConfigMap."""
    return f"{shard.name}{RECORD_SUFFIX}"


def reservations_in(data: Mapping[str, str]) -> Reservations | None:
    """The reservations in a record; None if it has none."""
    stored = data.get(RECORD_KEY)
    return msgspec.json.decode(stored, type=Reservations) if stored else None


def departures_in(data: Mapping[str, str]) -> Departures:
    """The departures in a record."""
    return msgspec.json.decode(data.get(FREED_KEY) or "[]", type=Departures)


def reservations_of(shard: Shard, config_maps: Iterable[Json]) -> Reservations | None:
    """The reservations of a shard, from all ConfigMaps of a cluster; None without a record."""
    return next(
        (reservations for data in _records(shard, config_maps) if (reservations := reservations_in(data)) is not None),
        None,
    )


def departures_of(shard: Shard, config_maps: Iterable[Json]) -> Departures:
    """The departures of a shard, from all ConfigMaps of a cluster."""
    return next((departures for data in _records(shard, config_maps) if (departures := departures_in(data))), ())


def _records(shard: Shard, config_maps: Iterable[Json]) -> Iterator[Mapping[str, str]]:
    name = record_name(shard)
    return (config_map.get("data") or {} for config_map in config_maps if config_map["metadata"].get("name") == name)
