"""Reasons in upstream's words: conditions, events and messages rendered from data."""

from __future__ import annotations

from typing import Any


def job_message(problems: list[Any]) -> str:
    """Everything that keeps a job waiting, in one text."""
    return "".join(str(problem) for problem in problems)
