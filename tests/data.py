"""The one place that knows where shared test data lies, and what must not be skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("SPINNEY_TEST_DATA", Path(__file__).resolve().parents[1].parent / "shared"))
REQUIRED = frozenset(filter(None, os.environ.get("SPINNEY_REQUIRE", "").split(",")))


def path(relative: str) -> Path:
    """A file or folder of the shared data; skips where it is absent, fails where it is required."""
    file = ROOT / relative
    if not file.exists():
        unavailable("data", f"{relative} is not below {ROOT.name}/ (set SPINNEY_TEST_DATA)")
    return file


def unavailable(what: str, why: str) -> None:
    """Skip for lack of something, or fail where SPINNEY_REQUIRE names it."""
    if what in REQUIRED:
        pytest.fail(f"SPINNEY_REQUIRE={what}: {why}")
    pytest.skip(why)
