"""Gangs that are being updated go back to the nodes they left; others use these nodes only if nothing else fits.

Always on, but it adds hooks only if such nodes exist. It only scores: it refuses no node.
"""

from __future__ import annotations

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.hooks import Score, Scores
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.tasks import Task

# More than all other scores together.
WEIGHT = 100_000_000.0
_NONE: Rows = np.zeros(0, dtype=np.intp)


class Reuse:
    """Nodes that tasks left a short while ago: all of them, and by gang, with a number for each gang."""

    def __init__(self, cycle: Cycle) -> None:
        nodes: dict[str, set[int]] = {}
        for departure, _ in cycle.state.departures.current(cycle.now):
            row = cycle.nodes.rows.get(departure.node)
            if row is not None:
                nodes.setdefault(departure.gang, set()).add(row)
        self.everyone: Rows = np.array(sorted(set().union(*nodes.values())), dtype=np.intp)
        self.by_gang: dict[str, tuple[int, Rows]] = {
            gang: (number, np.array(sorted(rows))) for number, (gang, rows) in enumerate(nodes.items(), 1)
        }

    def split(self, job: Job | None) -> tuple[Rows, Rows]:
        """The freed nodes that a job goes back to, and those that others go back to."""
        _, own = self.by_gang.get(job.spec.replaces if job is not None else "", (0, _NONE))
        return own, np.setdiff1d(self.everyone, own)

    def number(self, task: Task) -> int:
        """Return the number of the gang whose nodes a task prefers; 0 for none."""
        number, _ = self.by_gang.get(task.job.spec.replaces if task.job is not None else "", (0, _NONE))
        return number

    def score(self, task: Task, rows: Rows) -> Scores:
        """Score nodes that the task's gang left far above all others, those of other gangs far below."""
        own, others = self.split(task.job)
        scores: Scores = WEIGHT * (np.isin(rows, own).astype(float) - np.isin(rows, others))
        return scores


def install(cycle: Cycle) -> None:
    """Score freed nodes, if there are any."""
    reuse = cycle.get(Reuse)
    if reuse.by_gang:
        cycle.hooks.placement_keys.append(reuse.number)
        cycle.hooks.scores.append(Score(reuse.score, "steady"))
