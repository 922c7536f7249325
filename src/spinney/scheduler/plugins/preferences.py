"""Preferences of pods: affinity, topology spread and node affinity that are not required."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from spinney.api.affinity import tolerates
from spinney.scheduler.config import PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Score, Scores
from spinney.scheduler.plugins.pod_affinity import preference_scores
from spinney.scheduler.plugins.topology_spread import spread_scores
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.specs import NodeSpec, meets_all
from spinney.scheduler.state.tasks import Task, TaskClass

# Less than starting at once, more than filling nodes up.
EVENLY = 400.0
NODES = 300.0
AVOIDED = 200.0
AVOID = "PreferNoSchedule"


def install(cycle: Cycle, _: PluginConfig) -> None:
    """Score nodes by preferences of pods, and by PreferNoSchedule taints."""
    cycle.hooks.scores.append(Score(lambda task, rows: preference_scores(cycle, task, rows), "steady"))
    cycle.hooks.scores.append(Score(lambda task, rows: _spread(cycle, task, rows), "steady"))
    node_preferences = _NodePreferences(cycle)
    cycle.hooks.scores.append(Score(node_preferences.score, "steady"))


def _spread(cycle: Cycle, task: Task, rows: Rows) -> Scores | None:
    scores = spread_scores(cycle, task, rows)
    return None if scores is None else EVENLY * scores


class _NodePreferences:
    """Scores of all nodes by class, computed once a cycle."""

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        self.known: dict[int, Scores] = {}

    @cached_property
    def avoided(self) -> bool:
        """Whether any node has a PreferNoSchedule taint."""
        nodes = self.cycle.nodes
        return any(taint.effect == AVOID for row in self.cycle.all_rows for taint in nodes.spec(row).taints)

    def score(self, task: Task, rows: Rows) -> Scores | None:
        """Score nodes by preferred node affinity and taints."""
        cls = task.cls
        if not cls.constraints.preferred_nodes and not self.avoided:
            return None
        scores = self.known.get(cls.id)
        if scores is None:
            scores = self.known[cls.id] = np.zeros(len(self.cycle.nodes.live))
            for row in self.cycle.all_rows:
                scores[row] = _node_score(self.cycle.nodes.spec(row), cls)
        return scores[rows]


def _node_score(node: NodeSpec, cls: TaskClass) -> float:
    preferred = cls.constraints.preferred_nodes
    total = sum(weight for weight, _ in preferred)
    met = sum(weight for weight, term in preferred if meets_all(term, node))
    unwanted = any(taint.effect == AVOID and not tolerates(cls.constraints.tolerations, taint) for taint in node.taints)
    return (NODES * met / total if total else 0.0) - (AVOIDED if unwanted else 0.0)
