"""A slice of `make fuzz`: no input ends in an exception."""

from __future__ import annotations

from tests.fuzz.__main__ import attack


async def test_hostile_inputs_are_refused_and_never_break_anything() -> None:
    """5,000 inputs, the same in every run; `make fuzz` tries ten times as many, and measures how long each takes."""
    report = await attack(0, 5000)
    assert report.failures == []
    assert report.inputs.total() == 5000
