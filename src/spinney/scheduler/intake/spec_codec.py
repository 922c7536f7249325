"""Specs as plain data and back: everything that the input of a plan is made of, and nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

from spinney.api.affinity import Taint, Toleration
from spinney.api.missing import Lack, Missing
from spinney.scheduler.config import Config, PluginConfig
from spinney.scheduler.place.reservations import Reservation, Reservations
from spinney.scheduler.state import specs
from spinney.scheduler.state.departures import Departure
from spinney.scheduler.state.refusal import Code, Refusal

_CLASSES: tuple[type[Any], ...] = (
    specs.NodeSpec,
    specs.QueueSpec,
    specs.JobSpec,
    specs.TaskSpec,
    specs.TopologySpec,
    specs.Share,
    specs.GroupSpec,
    specs.Constraint,
    specs.Constraints,
    specs.GpuRequest,
    specs.DeviceRequest,
    specs.Match,
    specs.PodTerm,
    specs.SpreadTerm,
    specs.Numa,
    specs.NumaZone,
    Refusal,
    Missing,
    Departure,
    Taint,
    Toleration,
    Reservation,
    Reservations,
    Config,
    PluginConfig,
)
_BY_NAME = {each.__name__: each for each in _CLASSES}
_ENUMS: dict[str, type[Enum]] = {"Code": Code, "Lack": Lack}
# The key that names a class; no label or resource is called so.
_CLASS, _VALUE, _SET = "$", "v", "set"


def to_plain(value: Any) -> Any:
    """A value as JSON can hold it; fields that have their default are left out."""
    if isinstance(value, Enum):
        return {_CLASS: type(value).__name__, _VALUE: value.value}
    kind = type(value)
    if _BY_NAME.get(kind.__name__) is kind:
        defaults = _DEFAULTS[kind.__name__]
        fields = {name: getattr(value, name) for name in defaults}
        kept = {name: to_plain(field_value) for name, field_value in fields.items() if field_value != defaults[name]}
        return {_CLASS: kind.__name__, **kept}
    if isinstance(value, Mapping):
        return {key: to_plain(each) for key, each in value.items()}
    if isinstance(value, frozenset):
        return {_CLASS: _SET, _VALUE: [to_plain(each) for each in sorted(value)]}
    if isinstance(value, tuple | list):
        return [to_plain(each) for each in value]
    return value


def from_plain(value: Any) -> Any:
    """The value that was made plain; lists are tuples."""
    if isinstance(value, list):
        return tuple(from_plain(each) for each in value)
    if not isinstance(value, dict):
        return value
    name = value.get(_CLASS)
    if name is None:
        return {key: from_plain(each) for key, each in value.items()}
    if name == _SET:
        return frozenset(from_plain(each) for each in value[_VALUE])
    if name in _ENUMS:
        return _ENUMS[name](value[_VALUE])
    return _BY_NAME[name](**{key: from_plain(each) for key, each in value.items() if key != _CLASS})


def _defaults(kind: type[Any]) -> dict[str, Any]:
    """Every field of a class with its default; a field without one has a value that nothing equals."""
    required = object()
    if dataclasses.is_dataclass(kind):
        defaults: dict[str, Any] = {}
        for each in dataclasses.fields(kind):
            made = each.default_factory() if each.default_factory is not dataclasses.MISSING else required
            defaults[each.name] = each.default if each.default is not dataclasses.MISSING else made
        return defaults
    if issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        return {each.name: required if each.default is msgspec.NODEFAULT else each.default for each in fields}
    return {name: kind._field_defaults.get(name, required) for name in kind._fields}


_DEFAULTS = {each.__name__: _defaults(each) for each in _CLASSES}
