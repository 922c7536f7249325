"""Rows and a source for tests of the dashboard, without a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from spinney.answers.model import (
    Amounts,
    Answer,
    Capacity,
    Event,
    Gpu,
    Node,
    Queue,
    Sharer,
    Topology,
    TopologyDomain,
    Unread,
    WhatIf,
    Workload,
    WorkloadRef,
    WorkloadTree,
)
from spinney.answers.whatif.changes import Change, sentence_of
from spinney.web.board import Board, merge
from spinney.web.history import History
from spinney.web.rows import Table, keyed

AT = "2026-01-31T12:00:00Z"


def ref(name: str, namespace: str = "default") -> WorkloadRef:
    """A reference to a Job."""
    return WorkloadRef(kind="Job", api_version="batch/v1", namespace=namespace, name=name)


def workload(name: str, namespace: str = "default", ready: int = 1) -> Workload:
    """A Job of one pod that runs."""
    return Workload(
        ref=ref(name, namespace),
        uid=name,
        queue="team",
        priority=50,
        priority_class="train",
        scheduler="kai",
        phase="Running",
        placed=1,
        minimum=1,
        total=1,
        ready=ready,
        gpus=1.0,
        created=AT,
    )


def node(name: str, *namespaces: str) -> Node:
    """A node whose GPUs are taken by pods of these namespaces, one each."""
    gpus = [
        Gpu(
            index=index,
            sharers=[
                Sharer(
                    namespace=namespace,
                    pod=f"pod-{index}",
                    workload=ref("a", namespace),
                    queue="team",
                    fraction=1.0,
                )
            ],
            used=1.0,
        )
        for index, namespace in enumerate(namespaces)
    ]
    return Node(
        name=name,
        ready=True,
        cordoned=False,
        domain={"rack": "r0"},
        gpus=[*gpus, Gpu(index=len(gpus))],
        allocatable=Amounts(gpu=len(gpus) + 1.0, cpu=64.0, memory=2.0**40),
        allocated=Amounts(gpu=float(len(gpus)), cpu=8.0, memory=2.0**33),
        pods=len(gpus),
    )


def queue(name: str, gpus: float = 1.0) -> Queue:
    """A queue that uses some GPUs."""
    some, none = Amounts(gpu=gpus), Amounts()
    return Queue(
        name=name,
        parent=None,
        depth=0,
        priority=100,
        quota=some,
        limit=Amounts(gpu=None, cpu=None, memory=None),
        fair_share=some,
        allocated=some,
        borrowed=none,
        requested=none,
    )


def event(namespace: str, text: str = "said") -> Event:
    """An event about a pod."""
    return Event(at=AT, type="Normal", reason="Told", text=text, object=f"pod/{namespace}", namespace=namespace)


def table(*rows: Answer) -> Table:
    """Rows of any kinds."""
    kinds = {Workload: "workloads", Node: "nodes", Queue: "queues", Event: "events"}
    parts: dict[str, list[Answer]] = {"workloads": [], "nodes": [], "queues": [], "evictions": [], "events": []}
    for row in rows:
        parts[kinds[type(row)]].append(row)
    return {kind: keyed(members) for kind, members in parts.items()}  # type: ignore[misc]  # keys are the kinds


class Fixed:
    """A source with the rows that a test gives it."""

    def __init__(self, *rows: Answer) -> None:
        self.board = Board("epoch")
        self.history = History(60, 64)
        self.show(*rows)

    def show(self, *rows: Answer) -> None:
        """Replace all rows."""
        self.board.update(merge(self.board.table, table(*rows)), AT)

    def now(self) -> str:
        """A fixed time."""
        return AT

    async def ready(self) -> None:
        """Ready from the start."""

    def missing(self) -> tuple[Unread, ...]:
        """Nothing is missing."""
        return ()

    async def tree(self, row: Workload) -> WorkloadTree | None:
        """No parts."""
        return None

    async def capacity(self) -> Capacity:
        """Everything is in use."""
        return Capacity(total=2.0, used=2.0, idle=0.0)

    async def what_if(self, changes: Sequence[Change]) -> WhatIf:
        """The changes in words, and nothing else."""
        return WhatIf(changes=[sentence_of(change) for change in changes], text="Nothing more would start.")

    async def topology(self) -> Topology:
        """One level with one domain."""
        domain = TopologyDomain(level="rack", name="r0", parent=None, nodes=1, gpus=2.0, free=0.0)
        return Topology(levels=("rack",), domains=[domain])
