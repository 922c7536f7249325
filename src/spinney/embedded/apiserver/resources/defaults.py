"""Functions that fill in missing members."""

from __future__ import annotations

from typing import Any

from spinney.api.meta import Json


def fill(target: Json, **values: Any) -> None:
    """Set members that are not there."""
    for key, value in values.items():
        target.setdefault(key, value)


def only_spec(document: Json) -> None:
    """Set an empty spec where there is none."""
    document.setdefault("spec", {})


def add_finalizer(document: Json, name: str) -> None:
    """Add a finalizer that protects an object while it is used."""
    finalizers = document["metadata"].get("finalizers") or []
    if name not in finalizers:
        document["metadata"]["finalizers"] = [*finalizers, name]
