"""The journal: what was acknowledged is on disk. Writes of one moment are committed together.

SQLite runs in one thread of its own; the loop never waits for the disk. A kill at any time loses nothing that anyone
was told of: answers and watch events wait for the commit.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spinney.embedded.apiserver.store.store import Item, NotDurable

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    resource TEXT, key TEXT, version INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (resource, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS resources (name TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""
_FORMAT = 1


class DataError(Exception):
    """The folder's data cannot be used; the message says why and what to do."""


class SqliteJournal:
    """A journal in one file, owned by one process."""

    def __init__(self, path: Path) -> None:
        self._worker = ThreadPoolExecutor(1, "journal")
        self._pending: list[tuple[str, Item, bool]] = []
        self._flush: asyncio.Task[None] | None = None
        # Whether the last commit failed: what is appended now would only pile up in memory.
        self.failing = False
        self._database = self._worker.submit(_open, path).result()

    def append(self, table: str, item: Item, deleted: bool) -> None:
        """Add a write to the batch that `durable` waits for."""
        self._pending.append((table, item, deleted))

    async def durable(self) -> None:
        """Wait until everything appended so far is committed."""
        while self._pending or self._flush is not None:
            last = not self._pending
            if self._flush is None:
                self._flush = asyncio.get_running_loop().create_task(self._commit())
            flush = self._flush
            await asyncio.shield(flush)
            if last:
                return

    async def _commit(self) -> None:
        batch, self._pending = self._pending, []
        try:
            await asyncio.get_running_loop().run_in_executor(self._worker, self._write, batch)
            self.failing = False
        except BaseException as error:
            self.failing = True
            self._pending = batch + self._pending
            if isinstance(error, OSError | sqlite3.Error):
                raise NotDurable(str(error)) from error
            raise
        finally:
            self._flush = None

    def _write(self, batch: list[tuple[str, Item, bool]]) -> None:
        last: dict[str, int] = {}
        with self._database as database:
            database.execute("BEGIN IMMEDIATE")
            for table, item, deleted in batch:
                last[table] = item.version
                if deleted:
                    database.execute("DELETE FROM objects WHERE resource = ? AND key = ?", (table, item.key))
                else:
                    row = (table, item.key, item.version, item.body)
                    database.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", row)
            database.executemany("INSERT OR REPLACE INTO resources VALUES (?, ?)", last.items())

    def objects(self, table: str) -> list[tuple[str, int, bytes]]:
        """Key, version and body of every object of a resource."""
        query = "SELECT key, version, body FROM objects WHERE resource = ? ORDER BY key"
        return self._worker.submit(lambda: self._database.execute(query, (table,)).fetchall()).result()

    def resources(self) -> Iterator[tuple[str, int]]:
        """Every resource that was ever written, with the version of its last change."""
        query = "SELECT name, last FROM resources"
        yield from self._worker.submit(lambda: self._database.execute(query).fetchall()).result()

    def note(self, name: str, value: bytes) -> bytes:
        """A named value beside the objects: the stored one, or else this one, which is then stored."""

        def work() -> bytes:
            with self._database as database:
                database.execute("INSERT OR IGNORE INTO notes VALUES (?, ?)", (name, value))
            row = self._database.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
            return bytes(row[0])

        return self._worker.submit(work).result()

    async def close(self) -> None:
        """Commit pending writes, and close the file."""
        await self.durable()
        await asyncio.get_running_loop().run_in_executor(self._worker, self._database.close)
        self._worker.shutdown()


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600, exist_ok=True)
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.5)
    try:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = WAL")
        # A commit survives the end of the process; a power cut may lose the last commits, but not damage the file.
        database.execute("PRAGMA synchronous = NORMAL")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version not in (0, _FORMAT):
            raise DataError(f"{path}: its format is {version}, this version reads {_FORMAT}; use another folder")
        database.executescript(_SCHEMA)
        database.execute(f"PRAGMA user_version = {_FORMAT}")
    except sqlite3.OperationalError as error:
        hint = "; is another process running on this folder?" if "locked" in str(error) else ""
        raise DataError(f"{path}: {error}{hint}") from None
    except sqlite3.DatabaseError as error:
        raise DataError(f"{path}: {error}; it is not a data folder of this program") from None
    return database
