"""The overview that a user sees, from the rows that they may see."""

from __future__ import annotations

from collections import Counter

from spinney.answers.model import Capacity, Event, Eviction, GpuTotals, Node, Overview, Queue, Workload
from spinney.answers.overview import LATEST
from spinney.web.viewer import View


def overview_of(view: View, capacity: Capacity | None) -> Overview:
    """Totals, queues, and the latest of what happened; without a capacity, idle GPUs have no reason."""
    nodes = [row for row in view.rows("nodes") if isinstance(row, Node)]
    queues = [row for row in view.rows("queues") if isinstance(row, Queue)]
    workloads = [row for row in view.rows("workloads") if isinstance(row, Workload)]
    evictions = [row for row in view.rows("evictions") if isinstance(row, Eviction)]
    events = [row for row in view.rows("events") if isinstance(row, Event)]
    total = sum(node.allocatable.gpu or 0.0 for node in nodes)
    used = sum(node.allocated.gpu or 0.0 for node in nodes)
    return Overview(
        at=view.at,
        gpus=GpuTotals(total=total, used=used, idle=total - used, waiting=_asked_for(queues)),
        capacity=capacity or Capacity(total=total, used=used, idle=total - used),
        queues=queues,
        workloads=dict(Counter(row.phase for row in workloads)),
        evictions=sorted(evictions, key=lambda row: row.at, reverse=True)[:LATEST],
        events=sorted(events, key=lambda row: row.at, reverse=True)[:LATEST],
    )


def _asked_for(queues: list[Queue]) -> float:
    """GPUs that pending pods ask for: a queue's amount holds those of the queues below it."""
    names = {queue.name for queue in queues}
    return sum(queue.requested.gpu or 0.0 for queue in queues if queue.parent not in names)
