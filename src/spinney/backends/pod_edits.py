"""Changes to a pod before it is created, without touching the one that was handed in."""

from __future__ import annotations

from collections.abc import Mapping

from spinney.api.meta import Json


def edited(
    pod: Json,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, object] | None = None,
) -> Json:
    """The pod with more labels, annotations and fields of its spec."""
    metadata = dict(pod["metadata"])
    if labels:
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    if annotations:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], **(spec or {})}}
