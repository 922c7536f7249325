"""The index of pods by their PodGroup."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api import labels
from spinney.api.core import Pod

# The name of an index of pods.
BY_GROUP = "pods/group"


def group_of(pod: Pod) -> Iterable[str]:
    """The index key of a pod's group."""
    name = pod.metadata.annotations.get(labels.POD_GROUP)
    return (f"{pod.namespace}/{name}",) if name else ()
