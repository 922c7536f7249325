"""The fault search can fail: mistakes in every component are noticed (all of them in `make faults`)."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.faults.mutations import MUTATIONS

_ROOT = Path(__file__).parents[2]
_COMPONENTS = (
    "grove",
    "backends",
    *(f"backend {name}" for name in ("kai", "default", "volcano", "koordinator", "yunikorn")),
    "scheduler",
    "binder",
    "podgrouper",
    "podgroups",
    "queues",
    "admission",
    "nodescale",
    "platform",
    "reservation",
    # Of the simulated cluster.
    "nodes",
    "garbage collector",
)
# One scenario, so that one installation serves all of them.
_CHEAP = "queue-moved"


def test_every_component_has_at_least_two_mistakes() -> None:
    """A component without one may hide that nothing looks at it."""
    counts = Counter(mutation.component for mutation in MUTATIONS)
    assert set(counts) == set(_COMPONENTS)
    assert min(counts.values()) >= 2


def test_mistakes_are_noticed() -> None:
    """Each of the cheap ones breaks a rule that the search checks."""
    names = [mutation.name for mutation in MUTATIONS if mutation.scenario == _CHEAP]
    command = [sys.executable, "-m", "tests.faults.mutations", *names]
    ran = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
    assert len(ran.stdout.splitlines()) == len(names) > 3
