"""The fields that selectors may use, and their values in an object."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources.kinds import Kind

# Fields whose name is not their path.
_ALIASES = {"source": "source.component", "status.successful": "status.succeeded"}


@lru_cache(maxsize=4096)
def _members(names: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], list[tuple[str, str]]], ...]:
    """The fields by the path of the map that holds them: their names, and what the map calls them."""
    holders: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for name in names:
        *path, member = _ALIASES.get(name, name).split(".")
        holders.setdefault(tuple(path), []).append((name, member))
    return tuple(holders.items())


def _names(kind: Kind) -> tuple[str, ...]:
    return kind.resource.selectable if kind.custom is None else kind.custom.selectable


def stored_name(kind: Kind, name: str) -> str:
    """The stored name of a selector's field; empty where the kind does not support it."""
    if name in ("metadata.name", "metadata.namespace"):
        return name
    if kind.other is not None and kind.other.selectable:
        return kind.other.selectable.get(name, "")
    return name if name in _names(kind) else ""


def not_selectable(kind: Kind, name: str) -> str:
    """The message for a field that the kind does not support."""
    if kind.custom is None and not kind.resource.selectable:
        return f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    return f"field label not supported: {name}"


def values(kind: Kind, document: Json) -> Mapping[str, str]:
    """The values of an object's selectable fields, except name and namespace."""
    fields: dict[str, str] = {}
    for path, members in _members(_names(kind)):
        holder: Any = document
        for part in path:
            holder = holder.get(part) if isinstance(holder, dict) else None
        for name, member in members:
            value = holder.get(member) if isinstance(holder, dict) else None
            fields[name] = value if isinstance(value, str) else _text(value)
    if "spec.unschedulable" in fields or "spec.hostNetwork" in fields:
        for name in ("spec.unschedulable", "spec.hostNetwork"):
            if name in fields and not fields[name]:
                fields[name] = "false"
    return fields


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return _text(value[0].get("ip"))
    return str(value).lower() if isinstance(value, bool) else str(value)
