"""The tree of queues, and the usage of its subtrees."""

from __future__ import annotations

from collections import defaultdict

from spinney.api.kai import PodGroup
from spinney.api.meta import Key
from spinney.api.quantity import milli
from spinney.services.pods.usage import Amounts, add

FIELDS = ("requested", "allocated", "allocated_non_preemptible")

Usage = dict[str, Amounts]


def usage_of(group: PodGroup) -> Usage:
    """The usage that a group reports, in thousandths."""
    report = group.status.resources_status
    return {name: {key: milli(value) for key, value in getattr(report, name).items()} for name in FIELDS}


def _nothing() -> Usage:
    return {field: {} for field in FIELDS}


class Tree:
    """Usage per queue, updated by differences: a changed group touches its queue and the ancestors only.

    After a change of queues everything is summed up again, once, on the next read.
    """

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self._children: dict[str, set[str]] = defaultdict(set)
        self._own: dict[str, Usage] = defaultdict(_nothing)
        self._total: dict[str, Usage] = defaultdict(_nothing)
        self._grown = False
        self._group: dict[Key, tuple[str, Usage]] = {}

    def put_queue(self, name: str, parent: str | None) -> None:
        """Add or move a queue; None as the parent removes it."""
        self._children[self._parent.pop(name, "")].discard(name)
        if parent is not None:
            self._parent[name] = parent
            self._children[parent].add(name)
        self._grown = True

    def put_group(self, key: Key, queue: str, usage: Usage | None) -> set[str]:
        """Set a group's usage; returns the queues whose totals change."""
        touched: set[str] = set()
        before = self._group.pop(key, None)
        if before is not None:
            touched |= self._move(before[0], before[1], -1)
        if usage is not None:
            self._group[key] = (queue, usage)
            touched |= self._move(queue, usage, 1)
        return touched

    def upwards(self, name: str) -> list[str]:
        """A queue and its ancestors, up to the root or the start of a cycle."""
        names: list[str] = []
        while name and name not in names:
            names.append(name)
            name = self._parent.get(name, "")
        return names

    def children(self, name: str) -> list[str]:
        """The child queues, sorted."""
        return sorted(self._children.get(name, ()))

    def total(self, name: str) -> Usage:
        """The usage of a queue and everything below it."""
        if self._grown:
            self._grown = False
            self._total.clear()
            for queue, usage in self._own.items():
                self._add_upwards(queue, usage, 1)
        return self._total[name] if name in self._total else _nothing()

    def _move(self, queue: str, usage: Usage, sign: int) -> set[str]:
        _add(self._own[queue], usage, sign)
        if not self._grown:
            self._add_upwards(queue, usage, sign)
        return set(self.upwards(queue))

    def _add_upwards(self, queue: str, usage: Usage, sign: int) -> None:
        for above in self.upwards(queue):
            _add(self._total[above], usage, sign)


def _add(total: Usage, usage: Usage, sign: int) -> None:
    for field, amounts in usage.items():
        add(total[field], {name: sign * amount for name, amount in amounts.items()})
