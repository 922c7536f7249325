"""The scheduler's state is checked against its tasks after every step, in every test here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spinney.testing.validated_state import validated_changes, validated_moves


@pytest.fixture(autouse=True)
def state_stays_right() -> Iterator[None]:
    """Tables of nodes, GPUs and queues always add up to the tasks."""
    with validated_changes(), validated_moves(("settle",)):
        yield
