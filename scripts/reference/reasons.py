"""Every condition, phase and reason, with what it means to a user."""

from __future__ import annotations

from pathlib import Path

import yaml
from scripts.reference.tables import code, opening, table

from spinney.api import reasons

# Types of BindRequests, which only the binder reads.
_NOT_FOR_USERS = {reasons.REGULAR, reasons.FRACTION}


def page() -> str:
    """The page of reasons."""
    text = (
        "What conditions, phases and events say. `kubectl describe` shows them; "
        "[`spinney explain`](../answers.md#explain) says more about a gang that waits."
    )
    lines = opening("Conditions, events and reasons", text)
    parts = yaml.safe_load(Path(__file__).with_name("reasons.yaml").read_text())
    _check({name for part in parts.values() for name in part})
    for part, meanings in parts.items():
        rows = ((code(name), meaning) for name, meaning in meanings.items())
        lines += [f"## {part}", "", *table(("name", "meaning"), rows)]
    return "\n".join(lines)


def _check(explained: set[str]) -> None:
    names = {value for name, value in vars(reasons).items() if name.isupper()} - _NOT_FOR_USERS
    if explained != names:
        missing, unknown = sorted(names - explained), sorted(explained - names)
        raise SystemExit(f"reasons.yaml: not explained: {missing}; not in api/reasons.py: {unknown}")
