"""What Kubernetes refuses, and in which words."""

from __future__ import annotations

import pytest

from tests.api_behaviour import refusals
from tests.api_behaviour.wire import Api

ENTRIES = refusals.load()


@pytest.mark.parametrize("name", ENTRIES)
async def test_refusal(api: Api, namespace: str, name: str) -> None:
    """A request that is not acceptable gets the code, reason and message of Kubernetes."""
    entry = ENTRIES[name]
    assert refusals.told(await refusals.ask(api, namespace, entry), namespace) == entry["answer"]
