"""Where a scenario is played."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, cast

import pytest

from spinney.testing.controlplane import ControlPlane
from tests.grove import real, virtual
from tests.grove.stage import Stage


class Play(Protocol):
    """Plays a scenario on a stage with some nodes."""

    def __call__(self, scenario: Callable[[Stage], Awaitable[None]], nodes: int = 10, **extra: Any) -> None: ...


@pytest.fixture(params=["virtual", pytest.param("real", marks=pytest.mark.real)])
def both(request: pytest.FixtureRequest) -> Play:
    """Plays a scenario in virtual time, and once more on the real API server."""
    if request.param == "virtual":
        return virtual.play
    return partial(real.play, cast(ControlPlane, request.getfixturevalue("control_plane")))
