"""Reads pods that nobody has checked yet: plain data, in which any field may be missing."""

from __future__ import annotations

from spinney.api.meta import Json


def containers(pod: Json) -> list[Json]:
    """Every container, init containers first."""
    spec = pod.get("spec") or {}
    return [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]


def requests_of(container: Json) -> Json:
    """The requests of a container; a limit counts as a request."""
    resources = container.get("resources") or {}
    return {**(resources.get("requests") or {}), **(resources.get("limits") or {})}


def annotations_of(pod: Json) -> dict[str, str]:
    """A pod's annotations."""
    return (pod.get("metadata") or {}).get("annotations") or {}
