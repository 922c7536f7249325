"""Whatever of the journal reaches the disk: it opens with all writes up to some commit, and none of the next."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from spinney.embedded.apiserver.store.journal import SqliteJournal
from spinney.embedded.apiserver.store.store import Item

_WAL_HEADER, _FRAME_HEADER = 32, 24
TABLE = "/configmaps"
# What objects have at some moment: body by key.
Content = dict[str, bytes]


@dataclass(frozen=True)
class Written:
    """The files of a journal that was never closed, and what was acknowledged when."""

    folder: Path
    page: int
    # By commit, the first being that of the empty journal: the content, and how long the log was once it was told.
    commits: list[tuple[Content, int]]

    @property
    def log(self) -> bytes:
        return (self.folder / "data.db-wal").read_bytes()

    def frames(self) -> Iterator[int]:
        """Where each frame of the log starts."""
        return iter(range(_WAL_HEADER, len(self.log), _FRAME_HEADER + self.page))

    def reopened(self, place: Path, log: bytes, database: bytes | None = None) -> int:
        """Which commit a process finds that starts on such files; fails where it finds none of them."""
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        (place / "data.db").write_bytes(database or (self.folder / "data.db").read_bytes())
        (place / "data.db-wal").write_bytes(log)
        journal = SqliteJournal(place / "data.db")
        content_now = {key: body for key, _, body in journal.objects(TABLE)}
        last = dict(journal.resources()).get(TABLE, 0)
        journal._worker.submit(journal._database.close).result()
        journal._worker.shutdown()
        matching = [number for number, (content, _) in enumerate(self.commits) if content == content_now]
        assert matching, f"a mixture: {sorted(content_now)}"
        assert last == (0 if not matching[0] else matching[0] * 10 + 2)
        return matching[0]


def item(key: str, version: int, body: bytes) -> Item:
    """One object."""
    return Item(key, version, body, f"uid-{key}", {}, {})


@pytest.fixture(name="written")
async def _written(tmp_path: Path) -> Written:
    """Eight commits of three writes: new, changed and deleted objects, some larger than a page."""
    folder = tmp_path / "journal"
    journal = SqliteJournal(folder / "data.db")
    log = folder / "data.db-wal"
    content: Content = {}
    commits = [({}, log.stat().st_size)]
    for number in range(1, 9):
        large = bytes([64 + number]) * (6000 if number % 3 == 0 else 40)
        for offset, key in enumerate((f"ns/new-{number}", "ns/changed")):
            journal.append(TABLE, item(key, number * 10 + offset, large), deleted=False)
            content[key] = large
        gone = f"ns/new-{number - 2}"
        journal.append(TABLE, item(gone, number * 10 + 2, b""), deleted=True)
        content.pop(gone, None)
        await journal.durable()
        commits.append((dict(content), log.stat().st_size))
    page = struct.unpack(">I", log.read_bytes()[8:12])[0]
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    await journal.close()
    return Written(copy, page, commits)


def test_a_log_that_ends_anywhere_opens_with_whole_commits(written: Written, tmp_path: Path) -> None:
    """Cut at every frame and within each: never half a commit, and never less than was acknowledged by then."""
    log, reached = written.log, 0
    for start in written.frames():
        for cut in (start, start + 1, start + _FRAME_HEADER, start + _FRAME_HEADER + written.page // 2):
            commit = written.reopened(tmp_path / "cut", log[:cut])
            acknowledged = max(number for number, (_, size) in enumerate(written.commits) if size <= cut or number == 0)
            assert commit >= max(reached, acknowledged)
            reached = commit
    assert written.reopened(tmp_path / "cut", log) == len(written.commits) - 1


@pytest.mark.parametrize("torn", [b"\0", b"\xff"], ids=["zeros", "ones"])
def test_a_frame_that_is_missing_before_later_ones_ends_the_log_there(
    written: Written, tmp_path: Path, torn: bytes
) -> None:
    """Writes that reached the disk out of order: commits before the gap are kept, those after it are not mixed in."""
    log = written.log
    complete = [written.reopened(tmp_path / "gap", log[:start]) for start in written.frames()]
    for start, before in zip(written.frames(), complete, strict=True):
        size = _FRAME_HEADER + written.page
        gap = log[:start] + torn * size + log[start + size :]
        assert written.reopened(tmp_path / "gap", gap) == before


def test_one_flipped_byte_never_shows(written: Written, tmp_path: Path) -> None:
    """A damaged header or page of a frame is found by its checksum, and ends the log before its commit."""
    log = written.log
    for start in written.frames():
        for offset in (8, _FRAME_HEADER + written.page - 1):
            damaged = bytearray(log)
            damaged[start + offset] ^= 0x01
            commit = written.reopened(tmp_path / "flip", bytes(damaged))
            assert commit <= written.reopened(tmp_path / "whole", log[: start + _FRAME_HEADER + written.page])


def test_a_crash_while_the_log_is_copied_back_loses_nothing(written: Written, tmp_path: Path) -> None:
    """Some pages of the database are new, others old, one is torn: the log still has every commit."""
    before = (written.folder / "data.db").read_bytes()
    done = tmp_path / "done"
    shutil.copytree(written.folder, done)
    database = sqlite3.connect(done / "data.db")
    database.execute("PRAGMA wal_checkpoint(FULL)")
    after = (done / "data.db").read_bytes()
    database.close()
    before = before.ljust(len(after), b"\0")
    last = len(written.commits) - 1
    for cut in range(written.page, len(after) + 1, written.page // 2):
        assert written.reopened(tmp_path / "in-order", written.log, after[:cut] + before[cut:]) == last
        assert written.reopened(tmp_path / "reordered", written.log, before[:cut] + after[cut:]) == last
