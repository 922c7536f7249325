"""What many victims free together, in arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.tasks import Task, Vector
from spinney.scheduler.victims.filters import freed_gpus

# Tasks of one job that go together.
Batch = list[Task]


@dataclass(frozen=True, slots=True)
class Leaving:
    """Victims in order: the number of the batch, the row, and the GPUs freed, of each that is on a node."""

    batch: Rows
    rows: Rows
    gpus: Vector

    @staticmethod
    def of(cycle: Cycle, batches: list[Batch], first: int = 0) -> Leaving:
        """The victims of some batches, which are numbered from a first one on."""
        placed = [(number, task) for number, batch in enumerate(batches, first) for task in batch if task.node >= 0]
        return Leaving(
            np.array([number for number, _ in placed], dtype=np.intp),
            np.array([task.node for _, task in placed], dtype=np.intp),
            np.array([freed_gpus(cycle, task) for _, task in placed], dtype=np.float64),
        )

    def followed_by(self, more: Leaving) -> Leaving:
        """These victims, then others."""
        return Leaving(
            np.concatenate([self.batch, more.batch]),
            np.concatenate([self.rows, more.rows]),
            np.concatenate([self.gpus, more.gpus]),
        )

    def only(self, batches: list[int]) -> Leaving:
        """The victims of some batches, which are numbered anew, in the order given."""
        # Batches of which nobody is on a node are in no array.
        number = np.full(max(int(self.batch.max(initial=-1)), *batches, 0) + 1, -1, dtype=np.intp)
        number[batches] = np.arange(len(batches))
        batch = number[self.batch]
        kept = batch >= 0
        return Leaving(batch[kept], self.rows[kept], self.gpus[kept])


NOBODY = Leaving(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0))
