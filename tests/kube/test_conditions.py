"""Conditions: written when they change, with times that mean something."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from spinney.api.meta import Condition
from spinney.kube.conditions import as_json, condition, find, is_true, merged

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
BEFORE = NOW - timedelta(hours=1)


class Fixed:
    def now(self) -> datetime:
        return NOW


OURS = Condition(type="Ready", status="True", reason="Up", message="", last_transition_time=BEFORE)
THEIRS = Condition(type="Other", status="False", reason="Theirs", last_transition_time=BEFORE)


def test_nothing_to_write() -> None:
    """Conditions that already say so are not written."""
    assert merged([OURS, THEIRS], [condition("Ready", True, "Up")], Fixed()) is None


def test_time_moves_with_the_status_only() -> None:
    """A new reason keeps the time, a new status moves it."""
    reworded = merged([OURS], [condition("Ready", True, "Running")], Fixed())
    assert reworded is not None
    assert reworded[0].last_transition_time == BEFORE
    turned = merged([OURS], [condition("Ready", False, "Down", "gone")], Fixed())
    assert turned is not None
    assert turned[0].last_transition_time == NOW


def test_others_stay() -> None:
    """Conditions of others stay as they are, in their place."""
    result = merged([THEIRS, OURS], [condition("Ready", False, "Down"), condition("New", "Unknown", "x")], Fixed())
    assert result is not None
    assert result[0] is THEIRS
    assert [found.type for found in result] == ["Other", "Ready", "New"]


def test_dropped() -> None:
    """A condition that no longer applies goes."""
    assert merged([THEIRS, OURS], [], Fixed(), drop=["Ready"]) == (THEIRS,)


def test_reading() -> None:
    """Find a condition, and ask whether it holds."""
    assert find([OURS, THEIRS], "Other") is THEIRS
    assert is_true([OURS], "Ready")
    assert not is_true([THEIRS], "Other")
    assert not is_true([], "Ready")


def test_as_json_has_what_kubernetes_requires() -> None:
    """`message` is required on the wire even when empty."""
    assert as_json([OURS]) == [
        {"type": "Ready", "status": "True", "reason": "Up", "message": "", "lastTransitionTime": "2026-01-01T11:00:00Z"}
    ]
