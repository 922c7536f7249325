"""What a user asked for and cannot have, as an error that a command prints in one line."""

from __future__ import annotations


class UserError(Exception):
    """A mistake in a file, in an argument or in the environment; the process ends with this code."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def wrong_value(option: str, message: str) -> UserError:
    """The error for a value that an option or argument cannot have."""
    return UserError(f"Invalid value for {option}: {message}", exit_code=2)
