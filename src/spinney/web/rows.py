"""Rows that the dashboard keeps and sends: answers by kind and key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from spinney.answers.model import Answer, Event, Eviction, Node, Queue, Workload, WorkloadRef

RowKind = Literal["workloads", "nodes", "queues", "evictions", "events"]
KINDS: tuple[RowKind, ...] = ("workloads", "nodes", "queues", "evictions", "events")
# Key → row of one kind, and all kinds together.
Rows = Mapping[str, Answer]
Table = Mapping[RowKind, Rows]


def workload_key(ref: WorkloadRef) -> str:
    """`namespace/kind.group/name`, as in the address of the workload's page."""
    group = ref.api_version.rpartition("/")[0]
    return f"{ref.namespace}/{'.'.join(filter(None, (ref.kind.lower(), group)))}/{ref.name}"


def key_of(row: Answer) -> str:
    """The key of a row among those of its kind."""
    if isinstance(row, Workload):
        return workload_key(row.ref)
    if isinstance(row, Node | Queue):
        return row.name
    if isinstance(row, Eviction):
        return f"{row.at} {row.pod}"
    if isinstance(row, Event):
        return f"{row.at} {row.namespace}/{row.object} {row.reason}"
    raise TypeError(f"{type(row).__name__} has no key")


def keyed(rows: Iterable[Answer]) -> dict[str, Answer]:
    """Rows by key; of equal keys the last counts."""
    return {key_of(row): row for row in rows}
