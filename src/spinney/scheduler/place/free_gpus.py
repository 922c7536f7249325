"""Free GPUs of each node, idle or releasing: kept up to date, because every search for victims begins with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.state.nodes import Mask
from spinney.scheduler.state.tasks import GPU


def fitting(room: NDArray[np.float64], size: float) -> NDArray[np.float64]:
    """Return how many tasks of a size each node holds; an overcommitted node counts as 0."""
    return np.maximum(room // size, 0.0)


class FreeGpus:
    """GPUs idle or releasing on each row; arrays handed out are not changed later."""

    def __init__(self, cycle: Cycle) -> None:
        nodes, shared = cycle.nodes, cycle.state.gpus
        self._nodes = nodes
        self._shared = shared
        self._seen = len(nodes.touched)
        idle, releasing = nodes.whole_gpus(nodes.idle).copy(), nodes.whole_gpus(nodes.releasing).copy()
        for row in shared.on:
            parts = shared.leftover(row)
            idle[row] += parts[0]
            releasing[row] += parts[1]
        self._gpus = idle + releasing
        self._any: Mask = (idle > 0) | (releasing > 0)
        self._counts: dict[float, int] = {}

    def gpus(self) -> NDArray[np.float64]:
        """Return the free GPUs of each row, parts of shared ones included."""
        self._refresh()
        return self._gpus

    def any(self) -> Mask:
        """Return the rows with a free GPU, or a part of one."""
        self._refresh()
        return self._any

    def count(self, size: float) -> int:
        """Return how many tasks of so many whole GPUs all nodes hold."""
        self._refresh()
        count = self._counts.get(size)
        if count is None:
            count = self._counts[size] = int(fitting(self._gpus, size).sum())
        return count

    def _refresh(self) -> None:
        nodes, touched = self._nodes, self._nodes.touched
        if self._seen == len(touched):
            return
        changed = set(touched[self._seen :])
        self._seen = len(touched)
        self._gpus, self._any = self._gpus.copy(), self._any.copy()
        plain = not nodes.columns.slices
        for row in changed:
            idle = float(nodes.idle[row, GPU] if plain else nodes.whole_gpus(nodes.idle[row]))
            releasing = float(nodes.releasing[row, GPU] if plain else nodes.whole_gpus(nodes.releasing[row]))
            if row in self._shared.on:
                parts = self._shared.leftover(row)
                idle, releasing = idle + parts[0], releasing + parts[1]
            spare = idle + releasing
            for size in self._counts:
                self._counts[size] += int(max(spare // size, 0)) - int(max(self._gpus[row] // size, 0))
            self._gpus[row] = spare
            self._any[row] = idle > 0 or releasing > 0
