"""The last hour in memory: compressed changes between whole tables, bounded by age and by size."""

from __future__ import annotations

import zlib
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from spinney.answers.model import Answer, Event, Eviction, Node, Queue, Workload
from spinney.api.meta import encode
from spinney.web.rows import KINDS, RowKind, Rows, Table

# Changes that come faster than this are recorded together.
_EVERY = timedelta(seconds=2)
# A whole table again after so many changes: a moment is rebuilt from at most these.
_CHANGES_PER_TABLE = 30
_QUICK = 1

_TYPES: dict[RowKind, type[Answer]] = {
    "workloads": Workload,
    "nodes": Node,
    "queues": Queue,
    "evictions": Eviction,
    "events": Event,
}


@dataclass(frozen=True)
class _Record:
    at: datetime
    whole: bool
    # {kind: [{key: row}, [removed keys]]}
    packed: bytes


@dataclass(frozen=True)
class QueueSample:
    """The GPUs of each queue at one moment: allocated, requested, fair share."""

    at: datetime
    gpus: dict[str, tuple[float, float, float]]


class History:
    """Records tables and rebuilds the one of a moment."""

    def __init__(self, minutes: int, megabytes: int) -> None:
        self._span = timedelta(minutes=minutes)
        self._most_bytes = megabytes << 20
        self._records: deque[_Record] = deque()
        self._bytes = 0
        self._changes_since_whole = 0
        self._last: Table = {kind: {} for kind in KINDS}
        self.samples: deque[QueueSample] = deque()

    @property
    def size(self) -> int:
        """Bytes that the records take."""
        return self._bytes

    @property
    def moments(self) -> list[datetime]:
        """When something was recorded, oldest first."""
        return [record.at for record in self._records]

    def record(self, at: datetime, table: Table) -> None:
        """Keep a table, unless the last one is too recent."""
        if self._records and at - self._records[-1].at < _EVERY:
            return
        whole = not self._records or self._changes_since_whole >= _CHANGES_PER_TABLE
        before: Table = {kind: {} for kind in KINDS} if whole else self._last
        changes = {kind: _changes(before[kind], table[kind]) for kind in KINDS}
        if not whole and not any(changed or removed for changed, removed in changes.values()):
            return
        self._append(_Record(at, whole, zlib.compress(encode(changes), _QUICK)))
        self._last = table
        self._sample(at, table)
        self._forget(at)

    def at(self, moment: datetime) -> Table | None:
        """The table of a moment; None before the first record."""
        needed: list[_Record] = []
        for record in reversed(self._records):
            if record.at > moment:
                continue
            needed.append(record)
            if record.whole:
                break
        if not needed or not needed[-1].whole:
            return None
        table: dict[RowKind, dict[str, msgspec.Raw]] = {kind: {} for kind in KINDS}
        for record in reversed(needed):
            changes = msgspec.json.decode(
                zlib.decompress(record.packed), type=dict[str, tuple[dict[str, msgspec.Raw], list[str]]]
            )
            for kind in KINDS:
                changed, removed = changes[kind]
                table[kind].update(changed)
                for key in removed:
                    table[kind].pop(key, None)
        return {
            kind: {key: msgspec.json.decode(row, type=_TYPES[kind]) for key, row in rows.items()}
            for kind, rows in table.items()
        }

    def _append(self, record: _Record) -> None:
        self._records.append(record)
        self._bytes += len(record.packed)
        self._changes_since_whole = 0 if record.whole else self._changes_since_whole + 1

    def _sample(self, at: datetime, table: Table) -> None:
        gpus = {
            name: (row.allocated.gpu or 0.0, row.requested.gpu or 0.0, row.fair_share.gpu or 0.0)
            for name, row in table["queues"].items()
            if isinstance(row, Queue)
        }
        self.samples.append(QueueSample(at, gpus))

    def _forget(self, now: datetime) -> None:
        """Drop what is too old or too much, up to a whole table: later changes need the one before them."""
        while len(self._records) > 1 and (now - self._records[0].at > self._span or self._bytes > self._most_bytes):
            self._bytes -= len(self._records.popleft().packed)
        while self._records and not self._records[0].whole:
            self._bytes -= len(self._records.popleft().packed)
        while self.samples and now - self.samples[0].at > self._span:
            self.samples.popleft()


def _changes(before: Rows, after: Rows) -> tuple[dict[str, Answer], list[str]]:
    changed = {key: row for key, row in after.items() if before.get(key) is not row}
    return changed, [key for key in before if key not in after]
