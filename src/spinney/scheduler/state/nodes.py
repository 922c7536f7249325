"""Nodes as rows of arrays: allocatable, idle and releasing resources."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.scheduler.state.specs import DEFAULT_GPU_MEMORY, NodeSpec
from spinney.scheduler.state.tasks import GPU, Columns, TaskClass
from spinney.scheduler.state.undo_log import UndoLog

Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]
_MATRICES = ("allocatable", "idle", "releasing", "foreign", "has")


class Nodes:
    """The node table. Rows are reused after a node is gone; `live` says which rows hold a node."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.rows: dict[str, int] = {}
        self.specs: list[NodeSpec | None] = []
        width = len(columns)
        self.allocatable = np.zeros((0, width))
        self.idle = np.zeros((0, width))
        self.releasing = np.zeros((0, width))
        # Resources of tasks that this scheduler cannot evict.
        self.foreign = np.zeros((0, width))
        # 1.0 for resources that the node has: others are not tracked on it.
        self.has = np.zeros((0, width))
        # Whether the node has every resource that any node offers.
        self.complete = np.zeros(0, dtype=np.bool_)
        self.used_gpus = np.zeros(0)
        self.gpu_memory = np.zeros(0, dtype=np.int64)
        self.gpu_count = np.zeros(0, dtype=np.int64)
        self.live = np.zeros(0, dtype=np.bool_)
        # Whether kubelet says that the node may run pods.
        self.ready = np.zeros(0, dtype=np.bool_)
        self._rank = np.zeros(0, dtype=np.int64)
        self._codes: tuple[int, dict[str, NDArray[np.int64]]] = (-1, {})
        self._ranked = -1
        # Rows that changed, in order: caches over nodes look here for what to update.
        self.touched: list[int] = []
        self._free: list[int] = []
        # Grows when a node comes, goes or changes: masks made for an older version are stale.
        self.version = 0

    def __len__(self) -> int:
        return len(self.specs)

    def widen(self) -> None:
        """Add a column for every resource known by now."""
        missing = len(self.columns) - self.allocatable.shape[1]
        if missing <= 0:
            return
        pad = np.zeros((len(self.live), missing))
        for name in _MATRICES:
            setattr(self, name, np.hstack([getattr(self, name), pad]))
        self.complete[:] = False

    def add(self, spec: NodeSpec) -> int:
        """Add an empty node and return its row."""
        for resource in spec.allocatable:
            self.columns.add(resource)
        amounts = np.zeros(len(self.columns))
        for resource, amount in spec.allocatable.items():
            amounts[self.columns.find(resource)] += amount
        amounts[GPU] += spec.dra_gpus
        self.widen()
        row = self._free.pop() if self._free else self._grow()
        self.rows[spec.name] = row
        self.specs[row] = spec
        self.allocatable[row] = amounts
        self.idle[row] = amounts
        self.releasing[row] = 0.0
        self.has[row] = amounts != 0
        self.complete[row] = np.count_nonzero(amounts) == len(amounts) - 1
        self.used_gpus[row] = 0
        self.gpu_memory[row] = spec.gpu_memory
        self.gpu_count[row] = int(amounts[GPU]) if spec.gpu_count is None else spec.gpu_count
        self.live[row] = True
        self.ready[row] = spec.ready
        self.version += 1
        return row

    def remove(self, row: int) -> None:
        """Remove a node; its row may be reused."""
        spec = self.specs[row]
        if spec is not None:
            del self.rows[spec.name]
        self.specs[row] = None
        for name in _MATRICES:
            getattr(self, name)[row] = 0.0
        self.live[row] = False
        self._free.append(row)
        self.version += 1

    def _grow(self) -> int:
        row = len(self.specs)
        self.specs.append(None)
        if row >= len(self.live):
            size = max(16, 2 * row)
            for name in _MATRICES:
                old = getattr(self, name)
                new = np.zeros((size, old.shape[1]))
                new[: len(old)] = old
                setattr(self, name, new)
            for name in ("used_gpus", "gpu_memory", "gpu_count", "live", "ready", "complete"):
                old = getattr(self, name)
                new = np.zeros(size, dtype=old.dtype)
                new[: len(old)] = old
                setattr(self, name, new)
        return row

    def save(self, row: int, log: UndoLog) -> None:
        """Record what a row holds before it changes."""
        self.touched.append(row)
        log.record((_restore, self, row, (self.idle[row].copy(), self.releasing[row].copy(), self.used_gpus[row])))

    @property
    def rank(self) -> NDArray[np.int64]:
        """Return each node's position in the order of names, which decides ties."""
        if self._ranked != self.version:
            self._rank = np.zeros(len(self.live), dtype=np.int64)
            rows = [self.rows[name] for name in sorted(self.rows)]
            self._rank[rows] = np.arange(len(rows))
            self._ranked = self.version
        return self._rank

    def codes(self, label: str) -> NDArray[np.int64]:
        """Return a number for each row: equal for nodes with equal values of a label, -1 without the label."""
        if self._codes[0] != self.version:
            self._codes = (self.version, {})
        by_label = self._codes[1]
        if label not in by_label:
            by_label[label] = codes = np.full(len(self.live), -1, dtype=np.int64)
            numbers: dict[str, int] = {}
            for row in self.rows.values():
                value = self.spec(row).labels.get(label)
                if value is not None:
                    codes[row] = numbers.setdefault(value, len(numbers))
        return by_label[label]

    def all_rows(self) -> Rows:
        """The rows that hold a node, by name."""
        rows = np.flatnonzero(self.live)
        return rows[np.argsort(self.rank[rows], kind="stable")]

    def spec(self, row: int) -> NodeSpec:
        """The description of the node in a row."""
        spec = self.specs[row]
        if spec is None:
            raise LookupError(f"row {row} holds no node")
        return spec

    def name(self, row: int) -> str:
        """The node's name; empty for no node."""
        return self.spec(row).name if row >= 0 else ""

    def whole_gpus(self, amounts: NDArray[np.float64]) -> NDArray[np.float64]:
        """GPUs of a vector or matrix with MIG slices counted as GPUs, as quotas count them."""
        total: NDArray[np.float64] = amounts[..., GPU]
        for column, slices in self.columns.slices:
            if column < amounts.shape[-1]:
                total = total + slices * amounts[..., column]
        return total


class NodeSizes:
    """The largest node of a set, and its smallest and largest GPU by memory."""

    def __init__(self, nodes: Nodes, rows: Rows) -> None:
        self.largest_node = nodes.allocatable[rows].max(axis=0) if len(rows) else np.zeros(len(nodes.columns))
        memories = [int(memory) for memory in nodes.gpu_memory[rows] if memory > DEFAULT_GPU_MEMORY]
        self.smallest_gpu = min(memories, default=DEFAULT_GPU_MEMORY)
        self.largest_gpu = max(memories, default=DEFAULT_GPU_MEMORY)
        self._too_large: dict[int, bool] = {}

    def too_large(self, cls: TaskClass) -> bool:
        """Whether a class asks for more of a resource than any node has; shared GPUs are not checked."""
        answer = self._too_large.get(cls.id)
        if answer is None:
            answer = self._too_large[cls.id] = not cls.shared and bool((cls.request > self.largest_node).any())
        return answer


def _restore(nodes: Nodes, row: int, saved: tuple[NDArray[np.float64], NDArray[np.float64], float]) -> None:
    nodes.idle[row], nodes.releasing[row], nodes.used_gpus[row] = saved
    nodes.touched.append(row)
