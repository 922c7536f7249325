"""Read the saved record of a shard from its ConfigMap."""

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
