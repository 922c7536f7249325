"""A small cluster to ask about."""

from __future__ import annotations

import pytest

from tests.answers.scene import Scene


@pytest.fixture
def scene() -> Scene:
    """Two nodes of eight GPUs, and one queue."""
    return Scene().nodes(2).queue("team")
