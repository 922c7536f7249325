"""Keep what every cycle saw and decided in files, within bounds, to replay it later."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import structlog

from spinney.api.schedulerfile import DecisionLogSettings
from spinney.scheduler.config import Config
from spinney.scheduler.intake.decision_records import Recorder
from spinney.scheduler.place.reservations import Reservations
from spinney.scheduler.plan import Plan
from spinney.scheduler.state.cluster import State

_log = structlog.get_logger("spinney.scheduler")


class DecisionLog:
    """Writes one file after the other, each from a whole record on; the oldest go."""

    def __init__(self, settings: DecisionLogSettings) -> None:
        self._folder = Path(settings.folder)
        self._most_files = max(settings.files, 2)
        self._most_bytes = max(settings.bytes // self._most_files, 1)
        self._recorder = Recorder(version("spinney"))
        self._file: int | None = None
        self._number = 0
        self._size = 0
        self._works = True

    def add(
        self, state: State, config: Config, reservations: Reservations, aside: Mapping[str, str], made: Plan
    ) -> None:
        """Record a cycle; where that fails, log it once and go on without."""
        if not self._works:
            return
        try:
            if self._file is None or self._size >= self._most_bytes:
                self._next_file()
            line = self._recorder.record(state, config, reservations, aside, made)
            if len(line) > self._most_bytes:
                raise OSError(f"a record of {len(line)} bytes is larger than a file may be ({self._most_bytes})")
            assert self._file is not None
            os.write(self._file, line)
            self._size += len(line)
        except OSError as error:
            self._works = False
            _log.warning("decisions.not_kept", folder=str(self._folder), error=str(error))

    def _next_file(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._file is not None:
            os.close(self._file)
        files = sorted(self._folder.glob("decisions-*.jsonl"))
        self._number = max([self._number, *(int(path.stem.rpartition("-")[2]) for path in files)]) + 1
        for path in files[: max(len(files) - self._most_files + 1, 0)]:
            path.unlink()
        path = self._folder / f"decisions-{self._number:08}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._size = 0
        self._recorder.reset()
