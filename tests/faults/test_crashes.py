"""A part of the wide search (`python -m spinney.sim.faults`): whenever a process ends, the world comes out the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


def searched(*arguments: str) -> None:
    """Search in a process of its own, which may fork: this one has threads."""
    command = [sys.executable, "-W", "ignore", "-m", "spinney.sim.faults", *arguments]
    # The same order of sets in every run: what is found here can be found again.
    env = {**os.environ, "PYTHONHASHSEED": "0"}
    ran = subprocess.run(command, cwd=_ROOT, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("scenario", "every"),
    [("gang-kai", 11), ("gang-default", 13), ("scaling-kai", 70), ("shared", 13), ("claims", 7)],
)
def test_a_process_ends_at_a_write(scenario: str, every: int) -> None:
    """Before it arrived or before its answer did: nothing is lost, doubled, left behind or started once more."""
    searched(scenario, "--every", str(every))


def test_watches_are_late_and_break() -> None:
    """Caches lag by seconds, each by its own; watches break, begin anew, and processes end in the middle."""
    searched("gang-kai", "--storms", "5")
