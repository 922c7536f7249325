"""Which fields of a kind can be selected by, and their values on an object."""

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
    """The name that a field of a selector is stored under; empty where the kind cannot be selected by it."""
    if name in ("metadata.name", "metadata.namespace"):
        return name
    if kind.other is not None and kind.other.selectable:
        return kind.other.selectable.get(name, "")
    return name if name in _names(kind) else ""


def not_selectable(kind: Kind, name: str) -> str:
    """The message to a selector by a field that the kind cannot be selected by."""
    if kind.custom is None and not kind.resource.selectable:
        return f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    return f"field label not supported: {name}"


def values(kind: Kind, document: Json) -> Mapping[str, str]:
    """The selectable fields of an object, name and namespace apart."""
    found: dict[str, str] = {}
    for name, path in _paths(_names(kind)):
        node: Any = document
        for part in path:
            node = node.get(part) if isinstance(node, dict) else None
        found[name] = node if isinstance(node, str) else _text(node[0].get("ip") if isinstance(node, list) else node)
    if "spec.unschedulable" in found or "spec.hostNetwork" in found:
        for name in ("spec.unschedulable", "spec.hostNetwork"):
            if name in found and not found[name]:
                found[name] = "false"
    return found


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
