"""The record of a shard as others read it: a ConfigMap, known by its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from spinney.api.meta import Json
from spinney.scheduler.place.reservations import RECORD_KEY, RECORD_SUFFIX, Reservations
from spinney.scheduler.service.shard import Shard
from spinney.scheduler.state.departures import FREED_KEY, Departures


def record_name(shard: Shard) -> str:
    """The name of a shard's ConfigMap."""
    return f"{shard.name}{RECORD_SUFFIX}"


def reservations_in(data: Mapping[str, str]) -> Reservations | None:
    """What a record says about nodes that are kept; None where it says nothing."""
    stored = data.get(RECORD_KEY)
    return msgspec.json.decode(stored, type=Reservations) if stored else None


def departures_in(data: Mapping[str, str]) -> Departures:
    """What a record says about nodes that pods have left."""
    return msgspec.json.decode(data.get(FREED_KEY) or "[]", type=Departures)


def reservations_of(shard: Shard, config_maps: Iterable[Json]) -> Reservations | None:
    """What is kept in a shard, from all config maps of a cluster; None where its record is not among them."""
    return next((known for data in _records(shard, config_maps) if (known := reservations_in(data)) is not None), None)


def departures_of(shard: Shard, config_maps: Iterable[Json]) -> Departures:
    """The nodes that pods of a shard have left, from all config maps of a cluster."""
    return next((known for data in _records(shard, config_maps) if (known := departures_in(data))), ())


def _records(shard: Shard, config_maps: Iterable[Json]) -> Iterator[Mapping[str, str]]:
    name = record_name(shard)
    return (found.get("data") or {} for found in config_maps if found["metadata"].get("name") == name)
