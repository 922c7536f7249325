"""A value that does not have the type of its field."""

from __future__ import annotations

from typing import Any

_NAMES: dict[type, str] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


class Misfit(Exception):
    """A value that cannot be decoded into its field."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field
        self.problem = problem


def type_name(value: Any) -> str:
    """The JSON type of a value, for a sentence."""
    return _NAMES.get(type(value), "null")


def wrong_type(field: str, wanted: str, value: Any) -> Misfit:
    """A value of another JSON type than the wanted one."""
    return Misfit(field, f"expected {wanted}, got {type_name(value)}")
