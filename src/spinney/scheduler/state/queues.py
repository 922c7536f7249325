"""Queues as a tree in arrays: quota, limit, weight and what is charged to each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from spinney.scheduler.state.specs import UNLIMITED, QueueSpec
from spinney.scheduler.state.tasks import Triple


class Queues:
    """The queue tree of one configuration; queues without their parent, and all below them, are left out."""

    def __init__(self, specs: Mapping[str, QueueSpec]) -> None:
        rooted = {name: spec for name, spec in specs.items() if _rooted(name, specs)}
        self.names = list(rooted)
        self.index = {name: number for number, name in enumerate(self.names)}
        self.specs = list(rooted.values())
        self.parent = [self.index[spec.parent] if spec.parent else -1 for spec in self.specs]
        self.children: list[list[int]] = [[] for _ in self.names]
        for number, parent in enumerate(self.parent):
            if parent >= 0:
                self.children[parent].append(number)
        self.roots = [number for number, parent in enumerate(self.parent) if parent < 0]
        # A queue and its ancestors, the queue first.
        self.path = [self._path(number) for number in range(len(self.names))]
        shares = [(spec.cpu, spec.memory, spec.gpu) for spec in self.specs]
        self.quota = [[max(UNLIMITED, share.quota) for share in three] for three in shares]
        self.limit = [[max(UNLIMITED, share.limit) for share in three] for three in shares]
        self.weight = [[share.weight for share in three] for three in shares]
        self.priority = [spec.priority for spec in self.specs]
        self.created = [spec.created for spec in self.specs]
        self._levelled: dict[tuple[int, int], tuple[int, int]] = {}
        self.usage = np.array([spec.usage for spec in self.specs]).reshape(-1, 3)

    def _path(self, number: int) -> list[int]:
        path = []
        while number >= 0:
            path.append(number)
            number = self.parent[number]
        return path

    def __len__(self) -> int:
        return len(self.names)

    def leaf(self, number: int) -> bool:
        """Whether jobs may be in the queue."""
        return not self.children[number]

    def levelled(self, queue: int, other: int) -> tuple[int, int]:
        """Return the two siblings above two queues: the first ancestors in which their paths differ."""
        pair = self._levelled.get((queue, other))
        if pair is None:
            pair = self._levelled[queue, other] = self._parting(queue, other)
        return pair

    def _parting(self, queue: int, other: int) -> tuple[int, int]:
        pair = (queue, other)
        for first, second in zip(self.path[queue][::-1], self.path[other][::-1], strict=False):
            pair = (first, second)
            if first != second:
                break
        return pair


def flattened(specs: Mapping[str, QueueSpec]) -> dict[str, QueueSpec]:
    """Return the leaves without their parents: shares are divided between projects, not departments."""
    parents = {spec.parent for spec in specs.values()}
    leaves = (name for name in specs if name not in parents and _rooted(name, specs))
    return {name: replace(specs[name], parent="") for name in leaves}


def _rooted(name: str, specs: Mapping[str, QueueSpec]) -> bool:
    seen: set[str] = set()
    while name:
        if name not in specs or name in seen:
            return False
        seen.add(name)
        name = specs[name].parent
    return True


def within(amounts: Sequence[float], bounds: Sequence[float]) -> bool:
    """Whether no amount of cpu, memory and GPUs is above its bound; either may be unlimited."""
    # Unrolled: every comparison of two queues asks this a few times.
    cpu, memory, gpus = amounts
    most_cpu, most_memory, most_gpus = bounds
    return (
        (most_cpu == UNLIMITED or most_cpu >= cpu != UNLIMITED)
        and (most_memory == UNLIMITED or most_memory >= memory != UNLIMITED)
        and (most_gpus == UNLIMITED or most_gpus >= gpus != UNLIMITED)
    )


def zeros(count: int) -> list[list[float]]:
    """A table of cpu, memory and GPUs for so many queues."""
    return [[0.0, 0.0, 0.0] for _ in range(count)]


def plus(amounts: Sequence[float], more: Triple) -> list[float]:
    """Return the sum of two amounts."""
    return [amounts[0] + more[0], amounts[1] + more[1], amounts[2] + more[2]]


def added_up(triples: Iterable[Triple]) -> Triple:
    """The sum of amounts."""
    cpu = memory = gpus = 0.0
    for triple in triples:
        cpu, memory, gpus = cpu + triple[0], memory + triple[1], gpus + triple[2]
    return (cpu, memory, gpus)
