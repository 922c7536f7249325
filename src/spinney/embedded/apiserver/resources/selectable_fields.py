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
def _paths(names: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((name, tuple(_ALIASES.get(name, name).split("."))) for name in names)


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
    for name, path in _paths(_names(kind)):
        node: Any = document
        for part in path:
            node = node.get(part) if isinstance(node, dict) else None
        fields[name] = node if isinstance(node, str) else _text(node[0].get("ip") if isinstance(node, list) else node)
    if "spec.unschedulable" in fields or "spec.hostNetwork" in fields:
        for name in ("spec.unschedulable", "spec.hostNetwork"):
            if name in fields and not fields[name]:
                fields[name] = "false"
    return fields


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
