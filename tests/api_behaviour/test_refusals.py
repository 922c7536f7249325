"""What Kubernetes refuses, and in which words."""

from __future__ import annotations

import pytest

from tests.api_behaviour import refusals
from tests.api_behaviour.wire import Api

ENTRIES = refusals.load()


@pytest.mark.parametrize("name", ENTRIES)
async def test_refusal(api: Api, namespace: str, name: str) -> None:
    """A refused request gets the code and reason of Kubernetes, and its message where one is recorded."""
    wanted = ENTRIES[name]["answer"]
    assert refusals.told(await refusals.ask(api, namespace, ENTRIES[name]), namespace)[: len(wanted)] == wanted
