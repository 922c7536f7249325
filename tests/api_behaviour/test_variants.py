"""What becomes of objects of built-in kinds: their defaults, and why odd ones are refused."""

from __future__ import annotations

import pytest

from tests.api_behaviour import variants
from tests.api_behaviour.wire import Api
from tests.worlds import Cluster

TABLES = variants.load()


@pytest.mark.parametrize("name", TABLES)
async def test_variants(cluster: Cluster, api: Api, namespace: str, name: str) -> None:
    """Every variant of an object is completed, or refused, as Kubernetes does it."""
    table = TABLES[name]
    asked = variants.Tables(api, table, namespace, cluster.unique("base"))
    found = {"base": (await asked.begin(), table["gives"])}
    for sort in variants.SORTS:
        for about, changes, answer in table.get(sort) or ():
            found[f"{sort}: {about}"] = (await asked.ask(sort, changes), answer)
    await asked.end()
    assert {about: pair for about, pair in found.items() if pair[0] != pair[1]} == {}
