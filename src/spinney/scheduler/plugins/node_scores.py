"""Scores of nodes with room; each kind of score has its own order of magnitude."""

from __future__ import annotations

import numpy as np

from spinney.scheduler.config import ConfigError, PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Score, Scores
from spinney.scheduler.place.task_placement import has_room
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.tasks import CPU, GPU, Task

NOMINATED = 10_000_000.0
SHARING = 10_000.0
AVAILABLE = 1_000.0
RESOURCE_TYPE = 10.0
DENSITY = 9.0
STRATEGIES = ("binpack", "spread")


def nominated_node(cycle: Cycle, _: PluginConfig) -> None:
    """Prefer the node that a pod was nominated for."""

    def score(task: Task, rows: Rows) -> Scores | None:
        row = cycle.nodes.rows.get(task.spec.nominated_node)
        return None if row is None else np.where(rows == row, NOMINATED, 0.0)

    cycle.hooks.scores.append(Score(score, "steady"))


def gpu_sharing(cycle: Cycle, _: PluginConfig) -> None:
    """Prefer nodes where a GPU that is shared already has room."""

    def score(task: Task, rows: Rows) -> Scores | None:
        if task.cls.gpu.whole or not cycle.state.gpus.names:
            return None
        return np.where(cycle.state.gpus.with_room(task.cls)[rows] > 0, SHARING, 0.0)

    cycle.hooks.scores.append(Score(score, "steady"))


def availability(cycle: Cycle, _: PluginConfig) -> None:
    """Prefer nodes where the task can start at once."""

    def score(task: Task, rows: Rows) -> Scores:
        return np.where(has_room(cycle, task.cls, rows, cycle.nodes.idle.take(rows, axis=0)), AVAILABLE, 0.0)

    cycle.hooks.scores.append(Score(score, "room"))


def resource_type(cycle: Cycle, _: PluginConfig) -> None:
    """Keep tasks without GPUs off nodes with GPUs."""
    nodes = cycle.nodes
    plain = np.array(
        [spec is not None and not spec.mig_enabled and not spec.dra_gpus for spec in nodes.specs] or [False]
    )
    mask = np.zeros(len(nodes.live), dtype=np.bool_)
    mask[: len(plain)] = plain
    mask &= nodes.allocatable[:, GPU] <= 0

    def score(task: Task, rows: Rows) -> Scores | None:
        return np.where(mask[rows], RESOURCE_TYPE, 0.0) if task.cls.cpu_only else None

    cycle.hooks.scores.append(Score(score, "steady"))


def node_placement(cycle: Cycle, plugin: PluginConfig) -> None:
    """Fill nodes up (binpack) or even them out (spread), for GPU tasks and for others."""
    strategies = [plugin.arguments.get(key) or "binpack" for key in ("gpu", "cpu")]
    for strategy in strategies:
        if strategy not in STRATEGIES:
            raise ConfigError(f"plugin nodeplacement: strategy {strategy!r} is unknown; use binpack or spread")
    nodes = cycle.nodes

    def score(task: Task, rows: Rows) -> Scores:
        column, strategy = (CPU, strategies[1]) if task.cls.cpu_only else (GPU, strategies[0])
        left = (nodes.idle[:, column] + nodes.releasing[:, column])[rows]
        overall = nodes.allocatable[:, column][rows]
        if strategy == "spread":
            count = nodes.gpu_count[rows] if column == GPU else overall
            return np.where(count != 0, left / np.where(count == 0, 1, count), 0.0)
        return _density(left, overall)

    role = "density" if strategies == ["binpack", "binpack"] else ""
    cycle.hooks.scores.append(Score(score, role))


def _density(left: Scores, overall: Scores) -> Scores:
    """9 for the fullest node down to 0 for the emptiest, among nodes that have the resource at all."""
    having = overall != 0
    some = left[having]
    if not len(some):
        return np.zeros(len(left))
    least, most = float(some.min()), max(0.0, float(some.max()))
    if most == 0:
        return np.zeros(len(left))
    if least == most:
        return np.where(having, DENSITY, 0.0)
    return np.where(having, DENSITY * (1 - (left - least) / (most - least)), 0.0)


def gpu_pack(cycle: Cycle, _: PluginConfig) -> None:
    """Fill shared GPUs up before opening new ones."""
    cycle.hooks.gpu_scores.append(lambda part: 0.0 if part is None else part)


def gpu_spread(cycle: Cycle, _: PluginConfig) -> None:
    """Open new GPUs before sharing."""
    cycle.hooks.gpu_scores.append(lambda part: 1.0 if part is None else 1 - part)
