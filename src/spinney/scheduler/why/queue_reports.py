"""Quota, usage and pending requests of each queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spinney.scheduler.plan import Plan
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.nodes import NodeSizes
from spinney.scheduler.state.specs import QueueSpec, Share
from spinney.scheduler.state.tasks import Triple

_NONE: Triple = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class QueueReport:
    """A queue with everything below it; amounts of CPU (milli), memory (bytes) and GPUs, -1 for unlimited."""

    name: str
    parent: str
    depth: int
    priority: int
    quota: Triple
    limit: Triple
    fair_share: Triple
    allocated: Triple
    pending: Triple

    @property
    def borrowed(self) -> Triple:
        """What the queue holds beyond its quota."""
        over = [
            max(held - quota, 0.0) if quota >= 0 else 0.0
            for held, quota in zip(self.allocated, self.quota, strict=True)
        ]
        return over[0], over[1], over[2]


def queue_reports(state: State, plan: Plan) -> list[QueueReport]:
    """Every queue, parents before children, siblings by name."""
    children: dict[str, list[QueueSpec]] = {}
    for spec in state.queue_specs.values():
        parent_name = spec.parent if spec.parent in state.queue_specs else ""
        children.setdefault(parent_name, []).append(spec)
    index = state.queues.index
    smallest = NodeSizes(state.nodes, state.nodes.all_rows()).smallest_gpu
    reports: list[QueueReport] = []

    def visit(parent: str, depth: int) -> None:
        for spec in sorted(children.get(parent, ()), key=lambda queue: queue.name):
            row = index.get(spec.name)
            reports.append(
                QueueReport(
                    spec.name,
                    spec.parent,
                    depth,
                    spec.priority,
                    _each(spec, lambda share: share.quota),
                    _each(spec, lambda share: share.limit),
                    plan.fair_share.get(spec.name, _NONE),
                    _triple(state.charged[row]) if row is not None else _NONE,
                    _pending(state, row, smallest) if row is not None else _NONE,
                )
            )
            visit(spec.name, depth + 1)

    visit("", 0)
    return reports


def _pending(state: State, row: int, smallest_gpu: int) -> Triple:
    """What waits in a queue; memory of GPUs as parts of the smallest one around."""
    cpu, memory, gpus = state.waiting[row]
    by_memory = state.waiting_memory[row] / smallest_gpu if smallest_gpu else 0.0
    return cpu, memory, gpus + by_memory


def _each(spec: QueueSpec, pick: Callable[[Share], float]) -> Triple:
    return pick(spec.cpu), pick(spec.memory), pick(spec.gpu)


def _triple(row: list[float]) -> Triple:
    return row[0], row[1], row[2]
