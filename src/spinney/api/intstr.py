"""Counts that may be given as a percentage: `2` or `25%`."""

from __future__ import annotations

from spinney.api.numbers import whole_number

IntOrString = int | str


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
    if value.endswith("%") and (percent := whole_number(value[:-1])) is not None:
        return (percent * total + rounding) // 100
    if (number := whole_number(value)) is not None:
        return number
    raise PercentError(f"{value!r} is neither a count nor a percentage (2 or 25%)")
