"""The record of recent use that time-based fair share divides by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from spinney.scheduler.share.usage import UsageRecord

CLUSTER = (0.0, 0.0, 10.0)


def gpus(amount: float) -> tuple[float, float, float]:
    return (0.0, 0.0, amount)


def test_use_is_a_part_of_what_there_was() -> None:
    """Half of the cluster for half of the time is a quarter."""
    record = UsageRecord()
    record.add(0, {}, CLUSTER)
    record.add(100, {"a": gpus(5)}, CLUSTER)
    record.add(200, {}, CLUSTER)
    assert record.share("a") == (0.0, 0.0, 0.25)
    assert record.share("b") == (0.0, 0.0, 0.0)


def test_old_use_fades() -> None:
    """After a half-life it weighs half as much as the same use now."""
    record = UsageRecord(half_life=100)
    record.add(0, {}, CLUSTER)
    record.add(100, {"old": gpus(10)}, CLUSTER)
    record.add(200, {"new": gpus(10)}, CLUSTER)
    assert record.share("old")[2] * 2 == pytest.approx(record.share("new")[2])


@given(some.lists(some.floats(0.1, 50), min_size=1, max_size=20), some.floats(0, 10))
def test_how_often_the_record_is_kept_does_not_matter(steps: list[float], held: float) -> None:
    """Many short steps add up to one long one."""
    often, once = UsageRecord(half_life=60), UsageRecord(half_life=60)
    now = 0.0
    for record in (often, once):
        record.add(0, {}, CLUSTER)
    for step in steps:
        now += step
        often.add(now, {"a": gpus(held)}, CLUSTER)
    once.add(now, {"a": gpus(held)}, CLUSTER)
    assert often.share("a")[2] == pytest.approx(once.share("a")[2])


def test_time_that_stands_still_adds_nothing() -> None:
    """Two cycles in one moment count once."""
    record = UsageRecord()
    record.add(5, {"a": gpus(1)}, CLUSTER)
    record.add(5, {"a": gpus(1)}, CLUSTER)
    assert record.share("a") == (0.0, 0.0, 0.0)
