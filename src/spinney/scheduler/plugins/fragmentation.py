"""Fragmentation-aware placement (opt-in): put a task where the GPUs left over stay usable for typical tasks.

The idea is that of FGD (ATC'23): on a node, for one typical task, all free GPU that it could not use there is a
fragment; a node's fragmentation is the mean over typical tasks, weighted by how often they occur. A task goes where
that sum grows least. It replaces binpack or spread; other scores, topology and gangs work as before.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.scheduler.config import PluginConfig
from spinney.scheduler.cycle import Cycle, Score, Scores
from spinney.scheduler.nodes import Rows
from spinney.scheduler.tasks import CPU, GPU, Task, TaskClass

# Typical tasks cover this part of all tasks.
COVERED = 0.95
WEIGHT = 9.0
# How much an empty GPU weighs against a fragment: among near equals, the fuller node.
TIE = 0.03
Parts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Typical:
    """Tasks that occur often: cpu, devices, the part of each, which nodes take them, and how often they occur."""

    cpu: Parts
    devices: Parts
    portion: Parts
    allowed: NDArray[np.bool_]
    weight: Parts


def install(cycle: Cycle, _: PluginConfig) -> None:
    """Score nodes by how little they would be fragmented, and devices of a node likewise."""
    fragments = Fragments(cycle)
    cycle.hooks.scores.append(Score(fragments.score))
    cycle.choose = fragments.choose


class Fragments:
    """Fragmentation of every node, now and with one more task."""

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        nodes = cycle.nodes
        self.width = max(1, int(nodes.gpu_count[cycle.all_rows].max(initial=1)))
        self.typical = self._typical()
        # How much a kind of task would fragment each row, and how many changes of rows that has seen.
        self.known: dict[object, tuple[int, Parts]] = {}

    def _typical(self) -> Typical:
        by_class = Counter(task.cls for task in self.cycle.state.tasks.values())
        # Memory does not matter: classes that differ in nothing else are one kind.
        counts: Counter[object] = Counter()
        kinds: dict[object, TaskClass] = {}
        for cls, count in by_class.items():
            kind = (float(cls.request[CPU]), cls.devices, cls.portion, self.cycle.class_mask(cls).tobytes())
            counts[kind] += count
            kinds.setdefault(kind, cls)
        total, covered = sum(counts.values()), 0
        chosen = []
        for key, count in sorted(counts.items(), key=lambda item: (-item[1], kinds[item[0]].id)):
            cls = kinds[key]
            if covered >= COVERED * total:
                break
            chosen.append((cls, count))
            covered += count
        weight = np.array([float(count) for _, count in chosen])
        masks = [self.cycle.class_mask(cls) for cls, _ in chosen]
        return Typical(
            cpu=np.array([float(cls.request[CPU]) for cls, _ in chosen]),
            devices=np.array([float(cls.devices) for cls, _ in chosen]),
            portion=np.array([cls.portion for cls, _ in chosen]),
            allowed=np.array(masks).reshape(len(chosen), len(self.cycle.nodes.live)),
            weight=weight / weight.sum() if len(weight) else weight,
        )

    def parts(self, rows: Rows) -> Parts:
        """What is free of each device: shared ones first, then whole ones; devices that do not exist are 0."""
        nodes, gpus = self.cycle.nodes, self.cycle.state.gpus
        free = np.zeros((len(rows), self.width + 1))
        whole = (nodes.idle[rows, GPU] + nodes.releasing[rows, GPU]).astype(int)
        position = {int(row): number for number, row in enumerate(rows)} if gpus.on else {}
        used = np.zeros(len(rows), dtype=int)
        for row, groups in gpus.on.items():
            number = position.get(row)
            if number is None:
                continue
            memory = float(nodes.gpu_memory[row])
            for group in groups:
                taken, releasing, allocated = gpus.cells[group, :3]
                if taken > 0 and used[number] < self.width:
                    free[number, used[number]] = (memory - allocated + releasing) / memory
                    used[number] += 1
        columns = np.arange(self.width + 1)
        ones = (columns >= used[:, None]) & (columns < (used + whole)[:, None])
        free[ones] = 1.0
        return free

    def fragmentation(self, cpu: Parts, free: Parts, rows: Rows) -> Parts:
        """GPU on each node that typical tasks cannot use there, in GPUs."""
        kinds = self.typical
        total = free.sum(axis=1)
        result = np.zeros(len(rows))
        for kind in range(len(kinds.weight)):
            portion, devices = kinds.portion[kind], kinds.devices[kind]
            usable = free >= portion - 1e-9 if devices else np.zeros_like(free, dtype=np.bool_)
            fits = kinds.allowed[kind, rows] & (cpu >= kinds.cpu[kind]) & (usable.sum(axis=1) >= devices)
            # Without a GPU to use, everything left is a fragment for this kind.
            left = np.where(fits & (devices > 0), np.where(usable, 0.0, free).sum(axis=1), total)
            result += kinds.weight[kind] * left
        return result

    def score(self, task: Task, rows: Rows) -> Scores:
        """More for nodes that a task fragments less."""
        nodes, cls = self.cycle.nodes, task.cls
        key = (float(cls.request[CPU]), cls.devices, cls.portion)
        seen, growth = self.known.get(key, (0, np.zeros(0)))
        stale = np.unique(nodes.touched[seen:]).astype(np.intp) if len(growth) else self.cycle.all_rows
        if not len(growth):
            growth = np.zeros(len(nodes.live))
        if len(stale):
            cpu = nodes.idle[stale, CPU] + nodes.releasing[stale, CPU]
            free = self.parts(stale)
            before = self.fragmentation(cpu, free, stale)
            growth[stale] = self._with_task(task, cpu, free, stale) - before
        self.known[key] = (len(nodes.touched), growth)
        # Among equals, the fuller node.
        left = nodes.idle[rows, GPU] + nodes.releasing[rows, GPU]
        scores: Scores = WEIGHT / (1.0 + np.exp(growth[rows] + TIE * left))
        return scores

    def _with_task(self, task: Task, cpu: Parts, free: Parts, rows: Rows) -> Parts:
        """Fragmentation of each node once the task is there, on the devices that suit it best."""
        cls = task.cls
        left = cpu - cls.request[CPU]
        if not cls.devices:
            return self.fragmentation(left, free, rows)
        if cls.devices > 1 or cls.portion >= 1:
            return self.fragmentation(left, _without(free, cls.devices, cls.portion), rows)
        best = np.full(len(rows), np.inf)
        for column in range(free.shape[1]):
            fits = free[:, column] >= cls.portion - 1e-9
            if not fits.any():
                continue
            trial = free.copy()
            trial[fits, column] -= cls.portion
            best = np.minimum(best, np.where(fits, self.fragmentation(left, trial, rows), np.inf))
        return np.where(np.isfinite(best), best, 0.0)

    def choose(self, task: Task, row: int, options: list[tuple[float, int]]) -> list[tuple[float, int]]:
        """Order a node's devices for a task that shares them by what it would leave unusable."""
        nodes, gpus = self.cycle.nodes, self.cycle.state.gpus
        rows = np.array([row])
        cpu = nodes.idle[rows, CPU] + nodes.releasing[rows, CPU] - task.cls.request[CPU]
        free = self.parts(rows)
        memory = float(nodes.gpu_memory[row])
        scored = []
        for _, group in options:
            part = 1.0 if group < 0 else (memory - gpus.cells[group, 2] + gpus.cells[group, 1]) / memory
            column = int(np.argmin(np.abs(free[0] - part)))
            trial = free.copy()
            trial[0, column] -= task.cls.portion
            scored.append((-float(self.fragmentation(cpu, trial, rows)[0]), group))
        return scored


def _without(free: Parts, devices: int, portion: float) -> Parts:
    """The devices left when the fullest ones that suit are taken."""
    trial = free.copy()
    order = np.argsort(np.where(free >= portion - 1e-9, free, np.inf), axis=1, kind="stable")[:, :devices]
    taken = np.take_along_axis(trial, order, axis=1)
    np.put_along_axis(trial, order, np.where(taken >= portion - 1e-9, taken - portion, taken), axis=1)
    return trial
