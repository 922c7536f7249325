"""The GPUs that victims free, one by one and many together in arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.tasks import Task, Vector

# Tasks of one job that go together.
Batch = list[Task]


def freed_gpus(cycle: Cycle, task: Task) -> float:
    """Return the GPUs, or parts of them, that a task frees."""
    cls = task.cls
    return cls.charge(int(cycle.nodes.gpu_memory[task.node]))[2] if cls.memory else cls.triple[2]


@dataclass(frozen=True, slots=True)
class FreedGpus:
    """Batch number, node row and freed GPUs of each victim, in order."""

    batch: Rows
    rows: Rows
    gpus: Vector

    @staticmethod
    def of(cycle: Cycle, batches: list[Batch], first: int = 0) -> FreedGpus:
        """Return the victims of some batches, numbered from a first number on."""
        placed = [(number, task) for number, batch in enumerate(batches, first) for task in batch if task.node >= 0]
        return FreedGpus(
            np.array([number for number, _ in placed], dtype=np.intp),
            np.array([task.node for _, task in placed], dtype=np.intp),
            np.array([freed_gpus(cycle, task) for _, task in placed], dtype=np.float64),
        )

    def followed_by(self, more: FreedGpus) -> FreedGpus:
        """Return these victims, followed by others."""
        return FreedGpus(
            np.concatenate([self.batch, more.batch]),
            np.concatenate([self.rows, more.rows]),
            np.concatenate([self.gpus, more.gpus]),
        )

    def only(self, batches: list[int]) -> FreedGpus:
        """Return the victims of some batches, renumbered in the order given."""
        # Batches of which nobody is on a node are in no array.
        number = np.full(max(int(self.batch.max(initial=-1)), *batches, 0) + 1, -1, dtype=np.intp)
        number[batches] = np.arange(len(batches))
        batch = number[self.batch]
        kept = batch >= 0
        return FreedGpus(batch[kept], self.rows[kept], self.gpus[kept])


NOTHING_FREED = FreedGpus(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0))
