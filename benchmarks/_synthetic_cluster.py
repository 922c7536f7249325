"""A made-up cluster of any size for the dashboard: rows as the answers would give them, and changes to them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from spinney.answers.model import (
    Amounts,
    Answer,
    Capacity,
    CapacityPart,
    ExpectedStart,
    Gpu,
    Node,
    Queue,
    Reason,
    Sharer,
    Topology,
    Unread,
    WhatIf,
    Workload,
    WorkloadRef,
    WorkloadTree,
)
from spinney.answers.whatif.changes import Change, ChangeError
from spinney.web.board import Board, Merged, merge
from spinney.web.history import History
from spinney.web.rows import Table, keyed

LEVELS = ("kubernetes.io/zone", "kubernetes.io/block", "kubernetes.io/rack")
_GPUS = 8
_QUEUES = ("research", "search-ranking", "speech", "vision", "robotics", "default-queue")
_KINDS = (("PodCliqueSet", "grove.io/v1alpha1"), ("Job", "batch/v1"), ("PyTorchJob", "kubeflow.org/v1"))


class SyntheticCluster:
    """A source of rows without a cluster behind it."""

    def __init__(self, nodes: int, pods: int, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self.board = Board("synthetic")
        self.history = History(60, 64)
        self._start = datetime.now(UTC)
        self._free = [(node, gpu) for node in range(nodes) for gpu in range(_GPUS)]
        self._sharers: dict[tuple[int, int], list[Sharer]] = {}
        self._count = nodes
        self._workloads = self._make_workloads(pods)
        self._nodes = {index: self._node(index) for index in range(nodes)}
        self.publish(self.merged())

    def _make_workloads(self, pods: int) -> list[Workload]:
        rows: list[Workload] = []
        while pods > 0:
            size = min(pods, self._random.choice((1, 2, 4, 8, 16)))
            rows.append(self._workload(len(rows), size))
            pods -= size
        return rows

    def _workload(self, number: int, size: int) -> Workload:
        kind, version = self._random.choice(_KINDS)
        queue = self._random.choice(_QUEUES)
        ref = WorkloadRef(kind=kind, api_version=version, namespace=f"team-{queue}", name=f"run-{number:05d}")
        placed = len(self._free) >= size
        if placed:
            for member in range(size):
                node, gpu = self._free.pop(0)
                pod = f"{ref.name}-{member}"
                sharer = Sharer(namespace=ref.namespace, pod=pod, workload=ref, queue=queue, fraction=1.0)
                self._sharers.setdefault((node, gpu), []).append(sharer)
        why = Reason(
            code="NotEnoughRoom",
            text=f"no rack has room for {size} pods of 1 GPU",
            advice=[f"free {size} GPUs in one rack, or add {-(-size // _GPUS)} nodes to it"],
            missing={"gpu": float(size)},
        )
        expected = ExpectedStart(at=None, sureness="unknown", text="not before another workload ends")
        return Workload(
            ref=ref,
            uid=f"uid-{number}",
            queue=queue,
            priority=self._random.choice((50, 75, 100)),
            priority_class="train",
            scheduler="kai",
            phase="Running" if placed else "Waiting",
            placed=size if placed else 0,
            minimum=size,
            total=size,
            ready=size if placed else 0,
            gpus=float(size),
            created=self._at(-self._random.randrange(7200)),
            started=self._at(-60) if placed else None,
            line=None if placed else number % 90 + 1,
            expected_start=None if placed else expected,
            why=None if placed else why,
            gangs=[f"{ref.name}-0"],
        )

    def _node(self, index: int) -> Node:
        gpus = []
        for gpu in range(_GPUS):
            sharers = self._sharers.get((index, gpu), [])
            gpus.append(Gpu(index=gpu, sharers=sharers, used=sum(sharer.fraction for sharer in sharers)))
        rack = index // 16
        used = sum(gpu.used for gpu in gpus)
        ready = index % 331 != 7
        return Node(
            name=f"node-{index:05d}",
            ready=ready,
            cordoned=index % 217 == 3,
            domain={LEVELS[0]: f"zone-{rack // 32}", LEVELS[1]: f"block-{rack // 8}", LEVELS[2]: f"rack-{rack}"},
            gpus=gpus,
            allocatable=Amounts(gpu=float(_GPUS), cpu=128.0, memory=2.0**40),
            allocated=Amounts(gpu=used, cpu=4 * used, memory=used * 2**33),
            pods=sum(len(gpu.sharers) for gpu in gpus),
            problem=None if ready else "the kubelet stopped reporting",
        )

    def _queues(self) -> list[Queue]:
        share = self._count * _GPUS / len(_QUEUES)
        total = self._count * float(_GPUS)
        rows = [self._queue("all-teams", None, 0, total)]
        return rows + [self._queue(name, "all-teams", 1, share) for name in _QUEUES]

    def _queue(self, name: str, parent: str | None, depth: int, share: float) -> Queue:
        rows = [row for row in self._workloads if parent is None or row.queue == name]
        used = sum(row.gpus for row in rows if row.phase == "Running")
        asked = sum(row.gpus for row in rows if row.phase == "Waiting")
        unlimited = Amounts(gpu=None, cpu=None, memory=None)
        return Queue(
            name=name,
            parent=parent,
            depth=depth,
            priority=100,
            quota=Amounts(gpu=share * 0.8, cpu=None, memory=None),
            limit=unlimited,
            fair_share=Amounts(gpu=share, cpu=share * 16, memory=share * 2**36),
            allocated=Amounts(gpu=used, cpu=used * 4, memory=used * 2**33),
            borrowed=Amounts(gpu=max(0.0, used - share * 0.8)),
            requested=Amounts(gpu=asked, cpu=asked * 4, memory=asked * 2**33),
            waiting=sum(row.phase == "Waiting" for row in rows),
            running=sum(row.phase == "Running" for row in rows),
        )

    def merged(self) -> Merged:
        """All rows, compared with those on the board: what a thread of the dashboard does."""
        table: Table = {
            "workloads": keyed(self._workloads),
            "nodes": keyed(self._nodes.values()),
            "queues": keyed(self._queues()),
            "evictions": {},
            "events": {},
        }
        return merge(self.board.table, table)

    def publish(self, merged: Merged) -> None:
        """Put rows on the board."""
        self.board.update(merged, self.now())
        self.history.record(datetime.now(UTC), self.board.table)

    def change(self, count: int) -> None:
        """Let so many pods come or go, each on another GPU."""
        for _ in range(count):
            place = self._random.randrange(self._count), self._random.randrange(_GPUS)
            if self._sharers.get(place):
                self._sharers[place] = []
            else:
                row = self._random.choice(self._workloads)
                pod = f"{row.ref.name}-x"
                sharer = Sharer(namespace=row.ref.namespace, pod=pod, workload=row.ref, queue=row.queue, fraction=1.0)
                self._sharers[place] = [sharer]
            self._nodes[place[0]] = self._node(place[0])
            at = self._random.randrange(len(self._workloads))
            row = self._workloads[at]
            self._workloads[at] = msgspec.structs.replace(row, ready=self._random.randrange(row.total + 1))

    # What the endpoints ask for

    def now(self) -> str:
        """The time."""
        return datetime.now(UTC).isoformat().replace("+00:00", "Z")

    async def ready(self) -> None:
        """Ready from the start."""

    def missing(self) -> tuple[Unread, ...]:
        """Nothing is missing."""
        return ()

    async def tree(self, row: Workload) -> Answer | None:
        """A workload without parts."""
        return WorkloadTree(workload=row)

    async def capacity(self) -> Capacity:
        """Idle GPUs, for two reasons."""
        total = self._count * float(_GPUS)
        used = sum(len(sharers) for sharers in self._sharers.values())
        idle = total - used
        parts = [
            CapacityPart(reason="free", gpus=idle * 0.7, nodes=int(idle * 0.7 / _GPUS), text="whole nodes are free"),
            CapacityPart(reason="fragmentation", gpus=idle * 0.3, nodes=3, text="on nodes that are partly used"),
        ]
        return Capacity(total=total, used=used, idle=idle, by_reason=parts)

    async def what_if(self, changes: Sequence[Change]) -> WhatIf:
        """Nothing is known of it here."""
        raise ChangeError("there is no cluster behind these rows")

    async def topology(self) -> Topology:
        """Three levels."""
        return Topology(levels=LEVELS)

    def _at(self, seconds: float) -> str:
        return (self._start + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
