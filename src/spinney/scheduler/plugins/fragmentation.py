"""Fragmentation-aware placement (opt-in): put a task where the GPUs left over stay usable for typical tasks.

The idea is that of FGD (ATC'23): on a node, for one typical task, all free GPU that it could not use there is a
fragment, and a task goes where the sum over typical tasks grows least. Here the sum looks further: a node is also
judged by what would stay unused if it were filled up with each kind of task, so that GPUs left without processors
count before the last processor is gone; and kinds that ask for little weigh more, because room they cannot use is
room for more of them. It replaces binpack or spread; other scores, topology and gangs work as before.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.scheduler.config import PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Score, Scores
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.tasks import CPU, GPU, Task, TaskClass

# Typical tasks cover this part of all tasks.
COVERED = 0.95
WEIGHT = 9.0
# How much of a GPU every task is taken to need besides its request, so that tiny requests do not weigh without bound.
LEAST = 0.1
# What a node filled up would leave unused, against what the next task cannot use.
FILLED = 0.3
# Among near equals: the node with fewer processors to spare, then the one with fewer untouched GPUs.
PROCESSORS = 0.025
UNTOUCHED = 0.001
# Parts of GPUs are sums of hundredths.
EXACT = 1e-9
Parts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Typical:
    """Tasks that occur often: cpu, devices, which of the portions, which nodes take them, and how much they count."""

    cpu: Parts
    devices: Parts
    # The part of each device that a kind asks for, by its place among the portions that occur.
    portion: Rows
    portions: Parts
    allowed: NDArray[np.bool_]
    weight: Parts

    @property
    def size(self) -> Parts:
        """GPUs that one task of each kind asks for."""
        return self.devices * self.portions[self.portion]


@dataclass(frozen=True, slots=True)
class Rule:
    """How fragments are weighed; the paper's own rule counts tasks, and looks no further than the next one."""

    filled: float = FILLED
    processors: float = PROCESSORS
    untouched: float = UNTOUCHED
    # Whether a kind's weight is its number of tasks by what each asks for, or just their number.
    by_size: bool = True


def install(cycle: Cycle, _: PluginConfig) -> None:
    """Score nodes by how little they would be fragmented, and devices of a node likewise."""
    fragments = Fragments(cycle, Rule())
    cycle.hooks.scores.append(Score(fragments.score))
    cycle.hooks.gpu_orders.append(fragments.choose)


class Fragments:
    """Fragmentation of every node, now and with one more task; kept up to date by the rows that changed."""

    def __init__(self, cycle: Cycle, rule: Rule) -> None:
        self.cycle = cycle
        self.rule = rule
        nodes = cycle.nodes
        self.typical = typical(cycle, rule)
        self.most_cpu = float(nodes.allocatable[cycle.all_rows, CPU].max(initial=1.0))
        width = max(1, int(nodes.gpu_count[cycle.all_rows].max(initial=1)))
        # What is free of each device, and of processors; and what that is worth.
        self.free = np.zeros((len(nodes.live), width))
        self.cpu = np.zeros(len(nodes.live))
        self.now = np.zeros(len(nodes.live))
        self._seen = len(nodes.touched)
        self._read(cycle.all_rows)
        # How much a kind of task would fragment each row, and how many changes of rows that has seen.
        self._growth: dict[object, tuple[int, Parts]] = {}

    def _read(self, rows: Rows) -> None:
        """Compute rows again: shared devices first, then whole ones; devices that do not exist are 0."""
        nodes, gpus, width = self.cycle.nodes, self.cycle.state.gpus, self.free.shape[1]
        self.cpu[rows] = nodes.idle[rows, CPU] + nodes.releasing[rows, CPU]
        # A node may be overcommitted: pods run there that were bound without us.
        whole = np.maximum(nodes.idle[rows, GPU] + nodes.releasing[rows, GPU], 0.0).astype(int)
        self.free[rows] = np.arange(width) < whole[:, None]
        for row, count in zip(rows, whole, strict=True):
            groups = gpus.on.get(int(row))
            if not groups:
                continue
            cells = gpus.cells[groups]
            memory = float(nodes.gpu_memory[row])
            shared = ((memory - cells[:, 2] + cells[:, 1]) / memory)[cells[:, 0] > 0][: max(0, width - count)]
            self.free[row, count : count + len(shared)] = shared
        self.now[rows] = self.fragmentation(self.cpu[rows], self.free[rows], rows)

    def _refresh(self) -> None:
        touched = self.cycle.nodes.touched
        if self._seen != len(touched):
            self._read(np.unique(touched[self._seen :]).astype(np.intp))
            self._seen = len(touched)

    def fragmentation(self, cpu: Parts, free: Parts, rows: Rows) -> Parts:
        """GPU that typical tasks cannot use, in GPUs, for nodes with so much free."""
        kinds, rule = self.typical, self.rule
        total: Parts = free.sum(axis=1)
        if not len(kinds.weight):
            return total
        usable = free[:, None, :] >= kinds.portions[:, None] - EXACT
        fitting = usable.sum(axis=2)[:, kinds.portion]
        fits = kinds.allowed[:, rows].T & (cpu[:, None] >= kinds.cpu) & (fitting >= kinds.devices) & (kinds.devices > 0)
        useful = np.where(usable, free[:, None, :], 0.0).sum(axis=2)[:, kinds.portion]
        used = np.where(fits, useful, 0.0) @ kinds.weight
        wasted = total - used
        if rule.filled:
            pieces = np.floor((free[:, None, :] + EXACT) / np.maximum(kinds.portions, EXACT)[:, None]).sum(axis=2)
            count = pieces[:, kinds.portion] // np.maximum(kinds.devices, 1)
            count = np.minimum(count, cpu[:, None] // np.maximum(kinds.cpu, 1.0))
            wasted += rule.filled * (total - np.where(fits, count * kinds.size, 0.0) @ kinds.weight)
        return np.asarray(wasted)

    def score(self, task: Task, rows: Rows) -> Scores:
        """More for nodes that a task fragments less."""
        growth = self.growth(task)[rows]
        scores: Scores = WEIGHT / (1.0 + np.exp(growth + self._tightness(rows)))
        return scores

    def growth(self, task: Task) -> Parts:
        """By how much every node would be more fragmented with a task."""
        self._refresh()
        cls, touched = task.cls, self.cycle.nodes.touched
        key = (float(cls.request[CPU]), devices(cls), cls.portion, cls.memory)
        cached = self._growth.get(key)
        if cached is None:
            seen, growth = 0, np.zeros(len(self.now))
            stale = self.cycle.all_rows
        else:
            seen, growth = cached
            stale = np.unique(touched[seen:]).astype(np.intp)
        if len(stale):
            growth[stale] = self._with_task(cls, stale) - self.now[stale]
        self._growth[key] = (len(touched), growth)
        return growth

    def _tightness(self, rows: Rows) -> Parts:
        rule = self.rule
        untouched = (self.free[rows] == 1.0).sum(axis=1)
        return np.asarray(rule.processors * self.cpu[rows] / self.most_cpu + rule.untouched * untouched)

    def _with_task(self, cls: TaskClass, rows: Rows) -> Parts:
        """Fragmentation of each node once a task is there, on the devices that suit it best."""
        cpu, free, count = self.cpu[rows] - cls.request[CPU], self.free[rows], devices(cls)
        if not count:
            return self.fragmentation(cpu, free, rows)
        portion = self._portion(cls, rows)
        if count > 1 or not cls.shared:
            return self.fragmentation(cpu, _without(free, count, portion), rows)
        # Each device in turn, but one of several that are equally free.
        fits = free >= portion[:, None] - EXACT
        fits[:, 1:] &= free[:, 1:] != free[:, :-1]
        at, column = np.nonzero(fits)
        trials = free[at]
        trials[np.arange(len(at)), column] -= portion[at]
        best = np.full(len(rows), np.inf)
        np.minimum.at(best, at, self.fragmentation(cpu[at], trials, rows[at]))
        return np.where(np.isfinite(best), best, self.now[rows])

    def _portion(self, cls: TaskClass, rows: Rows) -> Parts:
        """The part that a class takes of a device of each row."""
        if not cls.memory:
            return np.full(len(rows), cls.portion or 1.0)
        return np.asarray(cls.memory / np.maximum(self.cycle.nodes.gpu_memory[rows], 1))

    def choose(self, task: Task, row: int, options: list[tuple[float, int]]) -> list[tuple[float, int]]:
        """Order a node's devices for a task that shares them by what it would leave unusable."""
        self._refresh()
        gpus, rows = self.cycle.state.gpus, np.full(len(options), row)
        memory = float(self.cycle.nodes.gpu_memory[row])
        parts = [1.0 if at < 0 else (memory - gpus.cells[at, 2] + gpus.cells[at, 1]) / memory for _, at in options]
        trials = np.repeat(self.free[[row]], len(options), axis=0)
        for number, part in enumerate(parts):
            trials[number, int(np.argmin(np.abs(trials[number] - part)))] -= self._portion(task.cls, rows[:1])[0]
        cpu = np.full(len(options), self.cpu[row] - task.cls.request[CPU])
        left = self.fragmentation(cpu, trials, rows)
        return [(-float(waste), group) for waste, (_, group) in zip(left, options, strict=True)]


def typical(cycle: Cycle, rule: Rule) -> Typical:
    """The kinds of tasks that occur most, as many as cover most tasks; memory makes no difference."""
    by_class = Counter(task.cls for task in cycle.state.tasks.values())
    counts: Counter[object] = Counter()
    kinds: dict[object, TaskClass] = {}
    for cls, count in by_class.items():
        mask = cycle.class_mask(cls).tobytes()
        kind: object = (float(cls.request[CPU]), devices(cls), _usual_portion(cycle, cls), mask)
        counts[kind] += count
        kinds.setdefault(kind, cls)
    total, covered = sum(counts.values()), 0
    chosen: list[tuple[TaskClass, int]] = []
    for kind, count in sorted(counts.items(), key=lambda item: (-item[1], kinds[item[0]].id)):
        if covered >= COVERED * total:
            break
        chosen.append((kinds[kind], count))
        covered += count
    portion = np.array([_usual_portion(cycle, cls) for cls, _ in chosen])
    portions, places = np.unique(portion, return_inverse=True)
    device_count = np.array([float(devices(cls)) for cls, _ in chosen])
    weight = np.array([float(count) for _, count in chosen])
    if rule.by_size:
        weight /= LEAST + device_count * portion
    masks = [cycle.class_mask(cls) for cls, _ in chosen]
    return Typical(
        cpu=np.array([float(cls.request[CPU]) for cls, _ in chosen]),
        devices=device_count,
        portion=places.astype(np.intp),
        portions=portions,
        allowed=np.array(masks, dtype=np.bool_).reshape(len(chosen), len(cycle.nodes.live)),
        weight=weight / weight.sum() if len(weight) else weight,
    )


def devices(cls: TaskClass) -> int:
    """How many GPUs, whole or in part, a class asks for."""
    return cls.devices or cls.dra


def _usual_portion(cycle: Cycle, cls: TaskClass) -> float:
    """The part of each GPU that a class asks for, wherever it will be; 0 without GPUs."""
    if cls.memory:
        return min(1.0, cls.memory / cycle.sizes.smallest_gpu)
    return (cls.portion or 1.0) if devices(cls) else 0.0


def _without(free: Parts, count: int, portion: Parts) -> Parts:
    """The devices left when the fullest ones that suit are taken."""
    suits = free >= portion[:, None] - EXACT
    order = np.argsort(np.where(suits, free, np.inf), axis=1, kind="stable")[:, :count]
    taken = np.zeros_like(suits)
    np.put_along_axis(taken, order, values=True, axis=1)
    return np.where(taken & suits, free - portion[:, None], free)
