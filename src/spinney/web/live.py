"""Keep the board current: compute answers again after a change, less often the more they cost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import thread_time

import structlog
from msgspec.structs import replace

from spinney.answers.capacity import capacity
from spinney.answers.cluster import Cluster
from spinney.answers.evictions import evictions
from spinney.answers.explanation import explanations
from spinney.answers.model import Capacity, Topology, Unread, WhatIf, Workload, WorkloadRef, WorkloadTree
from spinney.answers.nodes import nodes, topology
from spinney.answers.overview import latest_events
from spinney.answers.queues import queues
from spinney.answers.reading import Objects, cluster_of
from spinney.answers.tree import tree_of
from spinney.answers.whatif.applying import Expand, refuse_workloads
from spinney.answers.whatif.changes import Change, ChangeError
from spinney.answers.whatif.difference import whatif
from spinney.answers.workloads import parts_of, prospects_of, workloads
from spinney.api.times import rfc3339
from spinney.kube.clock import StoppedClock
from spinney.kube.runtime import Runtime
from spinney.web.board import Board, Merged, merge
from spinney.web.history import History
from spinney.web.rows import Table, keyed
from spinney.web.settings import DashboardSettings
from spinney.web.watching import Watching

_log = structlog.get_logger("spinney.web")

# Changes are gathered for this long, or for a multiple of the last computation: it takes a fifth of a core at most.
_GATHER_SECONDS = 0.25
_REST = 4.0


@dataclass(frozen=True)
class Answers:
    """What was computed of one moment; a tree is computed when the first reader asks for it, and shared."""

    cluster: Cluster
    capacity: Capacity
    topology: Topology
    trees: dict[WorkloadRef, WorkloadTree | None] = field(default_factory=dict)


class Live:
    """The source of a running cluster."""

    def __init__(
        self, runtime: Runtime, settings: DashboardSettings, epoch: str, expand: Expand = refuse_workloads
    ) -> None:
        self.board = Board(epoch)
        self.history = History(settings.history_minutes, settings.history_megabytes)
        self._clock = runtime.clock
        self._dirty = asyncio.Event()
        self._watching = Watching(runtime, self._dirty.set)
        self._ready = asyncio.Event()
        self._expand = expand
        self._answers: Answers | None = None
        # Trials change the scheduler's state for a moment: one at a time.
        self._trials = asyncio.Lock()

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        await self._watching.start()
        while True:
            self._dirty.clear()
            cost = 0.0
            try:
                cost = await self._refresh()
            except Exception:
                # One object that cannot be handled must not stop the page for all users.
                _log.exception("dashboard.refresh_failed")
            self._ready.set()
            await asyncio.sleep(max(_GATHER_SECONDS, _REST * cost))
            await self._dirty.wait()

    async def _refresh(self) -> float:
        """Compute all rows anew; returns the seconds of CPU that it took, which a busy machine does not lengthen."""
        objects = self._watching.objects()
        now = self._clock.now()
        self._answers, merged, cost = await asyncio.to_thread(_computed, objects, now, self.board.table)
        self.board.update(merged, rfc3339(now))
        self.history.record(now, self.board.table)
        return cost

    # What the endpoints ask for

    def now(self) -> str:
        """The time, as answers write it."""
        return rfc3339(self._clock.now())

    async def ready(self) -> None:
        """Wait for the first rows."""
        await self._ready.wait()

    def missing(self) -> tuple[Unread, ...]:
        """What this process may not read."""
        return self._watching.missing()

    async def tree(self, row: Workload) -> WorkloadTree | None:
        """A workload with its parts, and with advice that was tried."""
        async with self._trials:
            answers = self._answers
            if answers is None:
                return None
            if row.ref not in answers.trees:
                answers.trees[row.ref] = await asyncio.to_thread(_tree, answers.cluster, row.ref)
            return answers.trees[row.ref]

    async def capacity(self) -> Capacity:
        """Idle GPUs by reason."""
        return self._answers.capacity if self._answers is not None else Capacity(total=0.0, used=0.0, idle=0.0)

    async def what_if(self, changes: Sequence[Change]) -> WhatIf:
        """Try changes on a copy of the scheduler's state."""
        if self._answers is None:
            raise ChangeError("the cluster has not been read yet")
        async with self._trials:
            return await asyncio.to_thread(whatif, self._answers.cluster, changes, self._expand)

    async def topology(self) -> Topology:
        """Levels and domains."""
        return self._answers.topology if self._answers is not None else Topology()


def _computed(objects: Objects, now: datetime, before: Table) -> tuple[Answers, Merged, float]:
    begun = thread_time()
    cluster = cluster_of(objects, StoppedClock(now))
    table: Table = {
        "workloads": keyed(workloads(cluster).items),
        "nodes": keyed(nodes(cluster).items),
        "queues": keyed(queues(cluster).items),
        "evictions": keyed(evictions(cluster).items),
        "events": keyed(latest_events(cluster)),
    }
    answers, merged = Answers(cluster, capacity(cluster), topology(cluster)), merge(before, table)
    return answers, merged, thread_time() - begun


def _tree(cluster: Cluster, ref: WorkloadRef) -> WorkloadTree | None:
    parts = parts_of(cluster).get(ref)
    if parts is None:
        return None
    tree = tree_of(cluster, parts, prospects_of(cluster))
    for explanation in explanations(cluster, ref.kind.lower(), ref.name, ref.namespace):
        if explanation.workload is not None and explanation.workload.ref == ref and explanation.why is not None:
            return replace(tree, workload=replace(tree.workload, why=explanation.why))
    return tree
