"""Status patches: only the members that differ."""

from __future__ import annotations

from typing import Any

import msgspec

from spinney.api.meta import Json, Struct


def difference(stored: Struct, wanted: Json) -> Json:
    """The members of a wanted status that differ from the stored one; null removes a member."""
    before: Json = msgspec.to_builtins(stored)
    return {name: value for name, value in wanted.items() if _compact(before.get(name)) != _compact(value)}


def _compact(value: Any) -> Any:
    """Plain data without members that are absent on the wire: null, zero, empty."""
    if isinstance(value, dict):
        kept = {key: _compact(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None} or None
    if isinstance(value, list | tuple):
        return [_compact(item) for item in value] or None
    return value or None
