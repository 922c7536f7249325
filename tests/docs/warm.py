"""Runs `spinney` as a fork of a process that has imported everything: each start by itself costs seconds of CPU."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from spinney.cli.main import main

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [f"spinney.cli.{name}" for name in ("main", "nodes", "ask.ls", "ask.explain", "ask.status", "change.queue")]
)


def run(arguments: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float) -> tuple[int, str]:
    """Run a command to its end; returns its exit code and both of its outputs as one text."""
    output = folder / ".output"
    process = _CONTEXT.Process(target=_command, args=(list(arguments), folder, dict(environment), output))
    process.start()
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
    return process.exitcode or 0, output.read_text()


def _command(arguments: list[str], folder: Path, environment: dict[str, str], output: Path) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(written, stream)
    sys.argv = ["spinney", *arguments]
    main(arguments, prog_name="spinney")
