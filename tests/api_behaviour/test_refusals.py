"""What Kubernetes refuses, and in which words."""

from __future__ import annotations

import pytest

from tests.api_behaviour import refusals
from tests.api_behaviour.wire import Api
from tests.worlds import Cluster

ENTRIES = refusals.load()


@pytest.mark.parametrize("name", ENTRIES)
async def test_refusal(cluster: Cluster, api: Api, namespace: str, name: str) -> None:
    """A request that is not acceptable gets the code, reason and message of Kubernetes, or our own message."""
    entry = ENTRIES[name]
    answer = await refusals.ask(api, namespace, entry)
    answered, recorded = refusals.told(answer, namespace), entry["answer"]
    if recorded[:2] == [500, None] and cluster.name == "embedded":
        # A mistake of the client: 500 says that the server is at fault.
        recorded = [400, "BadRequest", recorded[2]]
    if entry.get("ours") and cluster.name == "embedded":
        assert answered[:2] == recorded[:2]
        assert refusals.fields_agree(answer, recorded[2])
    else:
        assert answered == recorded
