"""Find out what a file holds that is to be replayed, and read it."""

from __future__ import annotations

import zipfile
from pathlib import Path

from spinney.scheduler.intake.snapshot import SnapshotError, read
from spinney.sim.replay.formats import read_csv, read_kueue
from spinney.sim.replay.history import read_history, read_snapshot
from spinney.sim.replay.trace import Trace, TraceError


def read_trace(path: Path, run_for: float) -> Trace:
    """A trace, snapshot or history; pods of a snapshot that say nothing run for so many seconds."""
    try:
        if zipfile.is_zipfile(path):
            return read_snapshot(path.stem, read(path.read_bytes()), run_for)
        if path.suffix == ".csv":
            return read_csv(path)
        with path.open() as lines:
            first = lines.readline()
        return read_history(path) if first.startswith('{"at"') else read_kueue(path)
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: not text: {error.reason} at byte {error.start}") from error
    except SnapshotError as error:
        raise TraceError(f"{path}: {error}") from error
