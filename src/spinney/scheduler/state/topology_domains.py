"""Topologies as integer codes: for each level, which domain a node is in; sums over domains are one pass each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.scheduler.state.nodes import Nodes, Rows
from spinney.scheduler.state.specs import TopologySpec
from spinney.scheduler.state.tasks import PODS, Vector

ROOT = 0


class Domains:
    """The domains of one topology. Level 0 is the whole topology; deeper levels are its labels, widest first."""

    def __init__(self, spec: TopologySpec, nodes: Nodes) -> None:
        self.name = spec.name
        self.labels = ["", *(label for label, _ in spec.levels)]
        self.aliases = {alias: label for label, alias in spec.levels if alias}
        size = len(nodes.live)
        self.codes: NDArray[np.int64] = np.full((len(self.labels), size), -1, dtype=np.int64)
        self.ids: list[list[str]] = [["root"], *([] for _ in spec.levels)]
        self.parent: list[list[int]] = [[-1], *([] for _ in spec.levels)]
        index: list[dict[str, int]] = [{} for _ in self.labels]
        for row in nodes.all_rows():
            labels = nodes.spec(row).labels
            values = [labels.get(label) for label in self.labels[1:]]
            if any(value is None for value in values):
                continue
            self.codes[ROOT, row] = above = 0
            path = ""
            for level, value in enumerate(values, start=1):
                path = f"{path}.{value}" if path else str(value)
                code = index[level].get(path)
                if code is None:
                    code = index[level][path] = len(self.ids[level])
                    self.ids[level].append(path)
                    self.parent[level].append(above)
                self.codes[level, row] = above = code
        self.member = self.codes[ROOT] >= 0

    def level(self, label: str) -> int:
        """The level of a label or alias; -1 if the topology has no such level."""
        label = self.aliases.get(label, label)
        return self.labels.index(label) if label in self.labels[1:] else -1

    def common(self, rows: Rows, deepest: int) -> tuple[int, int]:
        """The narrowest domain that holds all rows, not below a level: (level, domain)."""
        narrowest = (ROOT, 0)
        if not len(rows):
            return narrowest
        for level in range(1, len(self.labels)):
            codes = self.codes[level, rows]
            if (codes != codes[0]).any():
                break
            narrowest = (level, int(codes[0]))
            if level == deepest:
                break
        return narrowest

    def sums(self, rows: Rows, amounts: Vector, level: int) -> Vector:
        """Totals of a row vector or matrix over each domain of a level."""
        codes = self.codes[level, rows]
        size = len(self.ids[level])
        if amounts.ndim == 1:
            total: Vector = np.bincount(codes, weights=amounts, minlength=size).astype(np.float64)
            return total
        return np.stack(
            [np.bincount(codes, weights=amounts[:, column], minlength=size) for column in range(amounts.shape[1])],
            axis=1,
        )


def load(request: Vector, spare: Vector) -> Vector:
    """For each domain, the largest part of any resource that a request would take; 1000 where there is none."""
    wanted = request > 0
    wanted[PODS] = False
    if not wanted.any():
        return np.zeros(len(spare))
    left = spare[:, wanted]
    ratio: Vector = np.where(left > 0, request[wanted] / np.where(left > 0, left, 1.0), 1000.0)
    result: Vector = ratio.max(axis=1)
    return result
