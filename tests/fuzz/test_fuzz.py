"""A slice of `make fuzz`: no input ends in an exception."""

from __future__ import annotations

from tests.fuzz.__main__ import attack

FIRST, COUNT = 0, 5_000


async def test_hostile_inputs_are_refused_and_never_break_anything() -> None:
    """The same inputs in every run; `make fuzz` tries 50,000, and measures how long each takes."""
    report = await attack(FIRST, COUNT)
    assert report.failures == []
    assert report.inputs.total() == COUNT
