"""The CRDs that we print and those of upstream are accepted, and established, by both worlds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from spinney.api.crd import GROUPS, crds
from tests import data
from tests.api_behaviour.crds import CRDS
from tests.api_behaviour.wire import Answer, Api, Json
from tests.worlds import Cluster

OURS = {crd["metadata"]["name"]: crd for crd in crds(GROUPS)}
UPSTREAM = sorted(str(path.relative_to(data.ROOT)) for path in data.ROOT.glob("crds/**/*.yaml"))


@pytest.mark.parametrize("name", OURS)
async def test_ours(cluster: Cluster, name: str) -> None:
    """Each of our definitions is accepted as it is printed, with no field lost and nothing to warn of."""
    answer = await tried(Api(cluster.transport()), OURS[name], fieldValidation="Strict")
    answer.ok()
    assert answer.warnings == ""


@pytest.mark.parametrize("name", UPSTREAM or ["crds"])
async def test_upstream(cluster: Cluster, name: str) -> None:
    """Each definition of Grove, KAI and the other schedulers is accepted as it is published."""
    api = Api(cluster.transport())
    for crd in definitions(data.path(name)):
        (await tried(api, crd)).ok()


async def tried(api: Api, crd: Json, **query: str) -> Answer:
    """What the server says to a definition, whether or not other tests have installed it before."""
    path = f"{CRDS}/{crd['metadata']['name']}"
    return await api.apply(path, crd, "definitions", dryRun="All", force="true", **query)


def definitions(file: Path) -> Iterator[Json]:
    """The CRDs of a file."""
    for document in yaml.load_all(file.read_text(), yaml.CSafeLoader):
        if document and document.get("kind") == "CustomResourceDefinition":
            yield document
