"""Files that only their owner may read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spinney.app.private_files import open_private


@pytest.mark.parametrize("linked", [False, True])
def test_a_file_that_others_could_read_is_private_before_anything_is_in_it(tmp_path: Path, linked: bool) -> None:
    """By its own name, or by that of a link; nothing of what it held stays."""
    file = tmp_path / "file"
    file.write_text("what was there before")
    file.chmod(0o644)
    name = tmp_path / "link" if linked else file
    if linked:
        name.symlink_to(file)
    with open_private(name) as out:
        assert file.stat().st_mode & 0o777 == 0o600
        out.write(b"new")
    assert file.read_text() == "new"


def test_root_took_a_pipe_or_a_device_from_everybody(tmp_path: Path) -> None:
    """What is no file keeps its mode: `record /dev/null` as root made it private, and failed for everybody else."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o666)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with open_private(pipe) as out:
            out.write(b"new")
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert pipe.stat().st_mode & 0o777 == 0o666
