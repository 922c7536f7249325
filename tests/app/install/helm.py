"""The chart of this checkout, and the real Helm."""

from __future__ import annotations

import subprocess
from pathlib import Path

from spinney.testing.cluster.programs import helm
from spinney.testing.golang import Unavailable
from tests import data

CHART = Path(__file__).parents[3] / "deploy" / "chart"


def run_helm(*arguments: str) -> str:
    """What helm prints; its errors fail the test."""
    try:
        program = helm()
    except Unavailable as error:
        data.unavailable("real", f"helm cannot be built: {error}")
        raise
    ran = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
