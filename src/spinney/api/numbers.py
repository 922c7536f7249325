"""Numbers in text: read from labels, annotations and queries, and written for readers."""

from __future__ import annotations

# Every number of so many digits fits into 64 bits.
_MOST_DIGITS = 18


def whole_number(text: str) -> int | None:
    """The number that a text of ASCII digits stands for; None if it is none, or longer than any real number.

    `str.isdecimal` is true of digits of every script, and `int` refuses texts of more than 4,300 digits.
    """
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        return None
    return int(text)


def number(amount: float) -> str:
    """An amount with no more than three digits after the point."""
    return f"{round(amount, 3):.3f}".rstrip("0").rstrip(".")
