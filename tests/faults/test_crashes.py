"""A small part of the fault search (`python -m spinney.sim.faults`): a crash changes no outcome."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


def searched(*arguments: str) -> None:
    """Search in a separate process, which may fork: this one has threads."""
    command = [sys.executable, "-W", "ignore", "-m", "spinney.sim.faults", *arguments]
    # The same order of sets in every run, so that a failure can be repeated.
    env = {**os.environ, "PYTHONHASHSEED": "0"}
    ran = subprocess.run(command, cwd=_ROOT, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("scenario", "every"),
    [("gang-kai", 11), ("gang-default", 13), ("scaling-kai", 70), ("shared", 13), ("claims", 7)],
)
def test_a_process_crashes_at_a_write(scenario: str, every: int) -> None:
    """Before the write arrives, or before its answer does: nothing is lost, doubled, left behind or created again."""
    searched(scenario, "--every", str(every))


def test_watches_are_delayed_and_break() -> None:
    """Caches lag by seconds, watches break and restart, and processes crash."""
    searched("gang-kai", "--storms", "5")
