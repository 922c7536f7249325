"""The newest rows of all kinds, and the last changes to them, for any number of readers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from spinney.answers.model import Answer
from spinney.web.rows import KINDS, RowKind, Rows, Table

# Changes that a reader may have missed and can still receive.
_KEPT_CHANGES = 240


@dataclass(frozen=True)
class Delta:
    """What changed between two sequence numbers; removed rows are kept, to decide who may see the removal."""

    seq: int
    at: str
    changed: Mapping[RowKind, Rows]
    removed: Mapping[RowKind, Rows]
    # Encoded once for all readers that see the same of it.
    encoded: dict[object, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Merged:
    """Newer rows, in which equal ones keep their identity, and what differs from the rows before."""

    table: Table
    changed: Mapping[RowKind, Rows]
    removed: Mapping[RowKind, Rows]


def merge(before: Table, after: Table) -> Merged:
    """Compare all rows with newer ones; takes a while for many, so a thread may do it."""
    table: dict[RowKind, Rows] = {}
    changed: dict[RowKind, Rows] = {}
    removed: dict[RowKind, Rows] = {}
    for kind in KINDS:
        table[kind], new, gone = _merge(before[kind], after.get(kind, {}))
        if new:
            changed[kind] = new
        if gone:
            removed[kind] = gone
    return Merged(table, changed, removed)


class Board:
    """Current rows, numbered changes, and an event that signals the next change."""

    def __init__(self, epoch: str) -> None:
        # Tells the sequence numbers of this process from those of an earlier one.
        self.epoch = epoch
        self.seq = 0
        self.at = ""
        self.table: Table = {kind: {} for kind in KINDS}
        self._deltas: deque[Delta] = deque(maxlen=_KEPT_CHANGES)
        self._changed = asyncio.Event()

    def update(self, merged: Merged, at: str) -> Delta | None:
        """Take over newer rows; returns what changed, None if nothing."""
        self.at = at
        if not merged.changed and not merged.removed:
            return None
        self.table = merged.table
        self.seq += 1
        delta = Delta(self.seq, at, merged.changed, merged.removed)
        self._deltas.append(delta)
        self._changed.set()
        self._changed = asyncio.Event()
        return delta

    @property
    def tag(self) -> str:
        """`epoch-seq` of the rows now."""
        return f"{self.epoch}-{self.seq}"

    def since(self, seq: int) -> list[Delta] | None:
        """The changes after a sequence number; None where they are no longer known."""
        if seq == self.seq:
            return []
        if seq > self.seq or not self._deltas or self._deltas[0].seq > seq + 1:
            return None
        return [delta for delta in self._deltas if delta.seq > seq]

    async def changed(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()


def _merge(old: Rows, new: Rows) -> tuple[dict[str, Answer], dict[str, Answer], dict[str, Answer]]:
    """All rows, those that differ, and those that are gone."""
    merged: dict[str, Answer] = {}
    changed: dict[str, Answer] = {}
    for key, row in new.items():
        before = old.get(key)
        if before is not None and (before is row or before == row):
            merged[key] = before
        else:
            merged[key] = changed[key] = row
    return merged, changed, {key: row for key, row in old.items() if key not in new}
