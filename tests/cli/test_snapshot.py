"""`spinney snapshot save`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.cli.main import main
from spinney.scheduler.intake.snapshot import Snapshot


def test_everyone_could_read_a_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is the user's alone, also where a file was there before."""
    monkeypatch.setattr("spinney.cli.snapshot.fetch_snapshot", lambda _: Snapshot())
    monkeypatch.setattr("spinney.cli.options.Connection.server", lambda _: None)
    file = tmp_path / "now.zip"
    file.touch(0o644)
    result = CliRunner().invoke(main, ["snapshot", "save", str(file)])
    assert result.exit_code == 0, result.output
    assert file.stat().st_mode & 0o777 == 0o600
