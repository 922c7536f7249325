"""The cluster at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from spinney.answers.capacity import capacity
from spinney.answers.cluster import Cluster, moment_of
from spinney.answers.evictions import evictions
from spinney.answers.model import Event, GpuTotals, Overview, Workload
from spinney.answers.queues import queues
from spinney.answers.workloads import workloads
from spinney.api import core
from spinney.api.times import rfc3339

# Events and evictions that an overview lists.
LATEST = 50


def overview(cluster: Cluster) -> Overview:
    """GPUs, queues, workloads by phase, and the latest evictions and events."""
    stock = capacity(cluster)
    listed = workloads(cluster).items
    return Overview(
        at=rfc3339(cluster.now),
        gpus=GpuTotals(total=stock.total, used=stock.used, idle=stock.idle, waiting=_waiting(listed)),
        capacity=stock,
        queues=queues(cluster).items,
        workloads=dict(Counter(str(each.phase) for each in listed)),
        evictions=evictions(cluster).items[:LATEST],
        events=latest_events(cluster),
    )


def latest_events(cluster: Cluster) -> list[Event]:
    """The latest events, newest first."""
    return [event_of(event) for event in sorted(cluster.events, key=moment_of, reverse=True)[:LATEST]]


def _waiting(listed: Sequence[Workload]) -> float:
    return sum(each.gpus or 0.0 for each in listed if each.phase == "Waiting")


def event_of(event: core.Event) -> Event:
    """An event as an answer."""
    about = event.involved_object
    return Event(
        at=moment_of(event),
        type=event.type,
        reason=event.reason,
        text=event.message,
        object=f"{about.kind.lower()}/{about.name}",
        namespace=about.namespace,
    )
