"""A slice of `make faults-real`: a component, the API server and its store are killed under load."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.testing import build
from tests import data
from tests.real_faults.campaign import run
from tests.real_faults.faults import KILLS

CHOSEN = ("kill -9 grove", "kill -9 etcd")


@pytest.mark.timeout(600)
async def test_kills_on_the_real_api_server_break_no_rule(tmp_path: Path) -> None:
    """Whoever is killed, gangs end whole, nothing is lost, and status says what is."""
    if not build.built() and "real" not in data.REQUIRED:
        data.unavailable("real", "the real control plane is not built: run `make controlplane`")
    faults = [fault for fault in KILLS if fault.name in CHOSEN]
    report = await run(tmp_path, faults, seconds=0, seed=1)
    assert report.problems == []
    assert [each.fault for each in report.rounds] == [*(fault.name for fault in faults), "everything was deleted"]
    assert min(report.actions, report.events, report.checks) > 0
