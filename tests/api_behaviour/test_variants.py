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
    tables = variants.Tables(api, table, namespace, cluster.unique("base"))
    pairs = {"base": (await tables.begin(), table["gives"])}
    for sort in variants.SORTS:
        for about, changes, recorded, *ours in table.get(sort) or ():
            pair = (await tables.ask(sort, changes), recorded)
            if ours and cluster.name == "embedded":
                pair = (variants.without_words(pair[0]), variants.without_words(recorded))
            pairs[f"{sort}: {about}"] = pair
    await tables.end()
    assert {about: pair for about, pair in pairs.items() if pair[0] != pair[1]} == {}
