"""The metadata of an object that is being deleted and waits for its finalizers."""

from __future__ import annotations

from datetime import timedelta

from spinney.api.meta import Json
from spinney.api.times import rfc3339
from spinney.embedded.apiserver.core import Core


def mark_deleted(core: Core, metadata: Json, grace: int) -> None:
    """Set when an object was, or will be, deleted. This counts as a change of its spec."""
    metadata["deletionTimestamp"] = rfc3339(core.clock.now() + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    if metadata.get("generation"):
        metadata["generation"] += 1


def begin(core: Core, document: Json, finalizers: list[str], options: Json) -> bool:
    """Mark an object that has finalizers, and return whether it has to wait for them."""
    if finalizers and not document["metadata"].get("deletionTimestamp"):
        mark_deleted(core, document["metadata"], 0)
    return bool(finalizers)
