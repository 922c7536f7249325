"""What a grouping rule reads: the pod, its owners, and a few lookups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.meta import Json, Struct


class Lookup(Protocol):
    """Reads that a rule may need beside the pod and its top owner."""

    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> Json | None:
        """One object as plain data, or None."""

    async def all(self, api_version: str, kind: str, labels: dict[str, str]) -> list[Json]:
        """All objects of a kind with these labels; none where the kind is not served."""

    def priority_class_exists(self, name: str) -> bool:
        """Whether a PriorityClass of that name is known."""

    def pods(self, namespace: str, labels: dict[str, str]) -> list[Pod]:
        """The scheduler's pods with all of these labels."""

    def has_group(self, namespace: str, name: str) -> bool:
        """Whether a PodGroup of that name exists."""

    def group_has_subgroups(self, namespace: str, name: str) -> bool | None:
        """Whether the PodGroup of that name has subgroups; None where there is no such group."""


class KindDefaults(Struct, frozen=True):
    """The defaults of one workload kind."""

    priority_class: str = ""
    preemptibility: str = ""


class Settings(Struct, frozen=True):
    """The grouper's configuration."""

    scheduler_name: str = labels.KAI_SCHEDULER
    queue_label: str = labels.QUEUE
    node_pool_label: str = labels.NODE_POOL
    # The queue of a pod comes before its owner's, since only pods' queues are reviewed.
    pods_name_queues: bool = False
    knative_gangs: bool = True
    # A Karta may describe how to group kinds without a rule.
    karta_fallback: bool = True
    # By "Kind.group" or by "Kind".
    kind_defaults: dict[str, KindDefaults] = {}
    # A ConfigMap with more of them, watched while running.
    defaults_namespace: str = ""
    defaults_name: str = ""
    # Only pods, and pods of namespaces, with all of these labels.
    pod_labels: dict[str, str] = {}
    namespace_labels: dict[str, str] = {}
    workers: int = 32


@dataclass(frozen=True)
class Context:
    """A pod and its owners."""

    pod: Pod
    # The top owner in full; the pod's own metadata where nobody owns it.
    top: Json
    # Metadata of each owner, from the pod upwards; the last one is the top owner.
    chain: tuple[Json, ...]
    lookup: Lookup
    settings: Settings


def labels_of(owner: Json) -> dict[str, str]:
    """An object's labels."""
    return dict(owner.get("metadata", {}).get("labels") or {})


def annotations_of(owner: Json) -> dict[str, str]:
    """An object's annotations."""
    return dict(owner.get("metadata", {}).get("annotations") or {})


def dig(value: Any, *path: str | int) -> Any:
    """The value at a path of keys and positions, or None where the path ends early."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value
