"""Counts that may be given as a percentage: `2` or `25%`."""

from __future__ import annotations

import re

IntOrString = int | str
_PERCENT = re.compile(r"^(\d+)%$")


class PercentError(ValueError):
    """Neither a count nor a percentage."""


def at_least(value: IntOrString, total: int) -> int:
    """The count, percentages of the total rounded up."""
    return _scaled(value, total, 99)


def at_most(value: IntOrString, total: int) -> int:
    """The count, percentages of the total rounded down."""
    return _scaled(value, total, 0)


def _scaled(value: IntOrString, total: int, rounding: int) -> int:
    if isinstance(value, int):
        return value
    if found := _PERCENT.match(value):
        return (int(found[1]) * total + rounding) // 100
    if value.isdigit():
        return int(value)
    raise PercentError(f"{value!r} is neither a count nor a percentage (2 or 25%)")
