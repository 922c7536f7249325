"""Shared GPUs: who holds how much memory of which device, and when a device counts as idle or releasing."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from spinney.scheduler.state import status as st
from spinney.scheduler.state.nodes import Nodes
from spinney.scheduler.state.tasks import GPU, TaskClass
from spinney.scheduler.state.undo_log import UndoLog

_FEW = 16


class SharedGpus:
    """The table of shared devices, one row for each group on each node."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.index: dict[tuple[int, str], int] = {}
        self.names: list[str] = []
        self.on: dict[int, list[int]] = {}
        # Columns: used, releasing, allocated memory; marked as a releasing GPU; ever allocated.
        self.cells = np.zeros((0, 5), dtype=np.int64)
        self.node = np.zeros(0, dtype=np.int64)
        # So many groups, and those that no task is in are forgotten: a new one is made for every device that is shared.
        self._full = _FEW
        # Grows with every change, also with those taken back.
        self.changes = 0
        # Devices with room for each memory and portion, for one number of changes and one version of the nodes.
        self._with_room: tuple[tuple[int, int], dict[tuple[int, float], NDArray[np.intp]]] = ((-1, -1), {})

    def __len__(self) -> int:
        return len(self.names)

    def row(self, node: int, group: str, log: UndoLog | None) -> int:
        """The row of a group on a node, made on first use."""
        number = self.index.get((node, group))
        if number is not None:
            return number
        if log is None and len(self.names) >= self._full:
            self._forget_unused()
        number = len(self.names)
        if number == len(self.node):
            self._grow()
        self.index[node, group] = number
        self.names.append(group)
        self.node[number] = node
        self.cells[number] = 0
        self.on.setdefault(node, []).append(number)
        if log is not None:
            log.record((self._forget, node, group, number))
        return number

    def _forget_unused(self) -> None:
        """Forget groups without tasks; the order of the others stays."""
        used = np.flatnonzero(self.cells[:, 0])
        self.names = [self.names[row] for row in used]
        self.cells, self.node = self.cells[used], self.node[used]
        self.index, self.on = {}, {}
        for row, (node, group) in enumerate(zip(self.node.tolist(), self.names, strict=True)):
            self.index[node, group] = row
            self.on.setdefault(node, []).append(row)
        self._full = max(_FEW, 2 * len(self.names))

    def _grow(self) -> None:
        more = max(_FEW, len(self.names))
        self.cells = np.vstack([self.cells, np.zeros((more, 5), dtype=np.int64)])
        self.node = np.concatenate([self.node, np.zeros(more, dtype=np.int64)])

    def _restore(self, row: int, cell: NDArray[np.int64], _: None) -> None:
        self.cells[row] = cell
        self.changes += 1

    def _forget(self, node: int, group: str, row: int) -> None:
        del self.index[node, group]
        self.names.pop()
        self.on[node].pop()
        self.cells[row] = 0

    def drop_node(self, node: int) -> None:
        """Forget every group of a node that is gone."""
        for row in self.on.pop(node, []):
            self.index.pop((node, self.names[row]), None)
            self.cells[row] = 0
            self.node[row] = -1

    def used_count(self, node: int) -> int:
        """GPUs of a node in use, whole ones and shared ones."""
        shared = sum(bool(self.cells[row, 0] > 0) for row in self.on.get(node, ()))
        return int(self.nodes.used_gpus[node]) + shared

    def add(self, node: int, group: str, cls: TaskClass, status: int, log: UndoLog | None) -> None:
        """Count a task's part of a group."""
        row = self.row(node, group, log)
        cell = self.cells[row]
        self.changes += 1
        if log is not None:
            log.record((self._restore, row, cell.copy(), None))
        idle, releasing = self.nodes.idle[node], self.nodes.releasing[node]
        memory = cls.memory_on(int(self.nodes.gpu_memory[node]))
        count = int(self.nodes.gpu_count[node])
        cell[0] += memory
        if status == st.RELEASING:
            cell[1] += memory
            cell[2] += memory
            cell[4] = 1
            if cell[0] == cell[1]:
                if not cell[3]:
                    releasing[GPU] += 1
                    cell[3] = 1
                if count < int(idle[GPU]) + self.used_count(node):
                    idle[GPU] -= 1
        elif status == st.PIPELINED:
            cell[1] -= memory
            if cell[0] - memory == cell[1] + memory:
                releasing[GPU] -= 1
        else:
            cell[2] += memory
            cell[4] = 1
            if cell[0] <= memory and count < int(idle[GPU]) + self.used_count(node):
                idle[GPU] -= 1
            if cell[3]:
                releasing[GPU] -= 1
                cell[3] = 0

    def remove(self, node: int, group: str, cls: TaskClass, status: int, log: UndoLog | None) -> None:
        """Count a task's part of a group no longer."""
        row = self.row(node, group, log)
        cell = self.cells[row]
        self.changes += 1
        if log is not None:
            log.record((self._restore, row, cell.copy(), None))
        idle, releasing = self.nodes.idle[node], self.nodes.releasing[node]
        memory = cls.memory_on(int(self.nodes.gpu_memory[node]))
        count = int(self.nodes.gpu_count[node])
        cell[0] -= memory
        if status == st.RELEASING:
            cell[1] -= memory
            cell[2] -= memory
            if cell[0] <= 0:
                if count >= int(idle[GPU]) + self.used_count(node):
                    idle[GPU] += 1
                if cell[3]:
                    releasing[GPU] -= 1
                    cell[3] = 0
        elif status == st.PIPELINED:
            cell[1] += memory
            if cell[0] + memory == cell[1] - memory or (cell[0] == 0 and cell[1] == 0):
                releasing[GPU] += 1
        else:
            cell[2] -= memory
            if cell[0] <= 0 and count >= int(idle[GPU]) + self.used_count(node):
                idle[GPU] += 1
            if cell[0] != 0 and cell[1] == cell[0] and not cell[3]:
                releasing[GPU] += 1
                cell[3] = 1

    def with_room(self, cls: TaskClass) -> NDArray[np.intp]:
        """Return how many devices of each node have room for a class, now or once releasing tasks are gone; cached."""
        version = (self.changes, self.nodes.version)
        if self._with_room[0] != version:
            self._with_room = (version, {})
        need = (cls.memory, cls.portion)
        counts = self._with_room[1].get(need)
        if counts is None:
            counts = self._with_room[1][need] = self.count_with_room(cls)
        return counts

    def count_with_room(self, cls: TaskClass) -> NDArray[np.intp]:
        """Count the devices with room for a class on each node."""
        size = len(self.names)
        cells, homes = self.cells[:size], self.node[:size]
        memory = self.nodes.gpu_memory[homes]
        need = cls.memory if cls.memory else (cls.portion * memory).astype(np.int64)
        room = memory - cells[:, 2] + cells[:, 1] - need >= 0
        fits = (cells[:, 0] != 0) & room & (cells[:, 2] != cells[:, 1])
        return np.bincount(homes[fits], minlength=len(self.nodes.live))

    def fits(self, row: int, cls: TaskClass) -> bool:
        """Whether a device has room for a task, now or once releasing tasks are gone."""
        used, releasing, allocated = self.cells[row, :3]
        memory = int(self.nodes.gpu_memory[self.node[row]])
        return bool(used != 0 and allocated != releasing and memory - allocated + releasing >= cls.memory_on(memory))

    def overcommitted(self, node: int, groups: Iterable[str]) -> bool:
        """Whether some devices of a node are overcommitted once releasing tasks are gone."""
        memory = int(self.nodes.gpu_memory[node])
        cells = [self.cells[self.index[node, group]] for group in groups if (node, group) in self.index]
        return any(int(cell[2]) - int(cell[1]) > memory for cell in cells)

    def fits_now(self, row: int, cls: TaskClass) -> bool:
        """Whether a device has room for a task now."""
        memory = int(self.nodes.gpu_memory[self.node[row]])
        return bool(self.cells[row, 4]) and memory - int(self.cells[row, 2]) >= cls.memory_on(memory)

    def leftover(self, node: int) -> tuple[float, float]:
        """Parts of a node's shared GPUs that are idle and that are releasing, as the search for victims counts them."""
        memory = int(self.nodes.gpu_memory[node])
        idle = leaving = 0.0
        for row in self.on.get(node, ()):
            used, releasing, allocated = (int(value) for value in self.cells[row, :3])
            if allocated > 0:
                idle += 1 - _part(allocated, memory)
            if releasing > 0 and not (used and releasing == used):
                leaving += _part(releasing, memory)
        return idle, leaving

    def leftover_memory(self, node: int) -> int:
        """Return the idle and releasing memory of a node's shared GPUs, as the search for victims counts it."""
        memory = int(self.nodes.gpu_memory[node])
        total = 0
        for row in self.on.get(node, ()):
            used, releasing, allocated = (int(value) for value in self.cells[row, :3])
            if allocated > 0:
                total += memory - allocated
            if releasing > 0 and not (used and releasing == used):
                total += releasing
        return total

    def available_parts(self, node: int) -> float:
        """Parts of GPUs free on devices in use, as topology counts them."""
        memory = int(self.nodes.gpu_memory[node])
        total = 0.0
        for row in self.on.get(node, ()):
            used, releasing, allocated = (int(value) for value in self.cells[row, :3])
            if used > 0 and memory - allocated + releasing > 0:
                total += (memory - allocated + releasing) / memory
        return total


def _part(memory: int, whole: int) -> float:
    return float(np.ceil(memory / whole * 100) / 100)
