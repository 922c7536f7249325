"""How a story ends where a scheduler cannot tell it: what is kept, and what a user reads."""

from __future__ import annotations

import pytest

from spinney.api import labels
from spinney.api.core import Node
from spinney.kube.errors import ApiError
from tests.schedulers.place import Place
from tests.schedulers.stories.changing import replace_all_pods
from tests.schedulers.stories.faults import restart_in_mid_gang
from tests.schedulers.stories.topology import REFUSED, domains, packed
from tests.schedulers.topology import BLOCK, RACK


async def update_may_move(place: Place) -> None:
    """The update completes; its pods may be on other nodes than before."""
    await place.nodes(1, gpus=4)
    await place.apply(place.workers("serve", 4))
    await place.runs("serve-0", 4)
    await place.nodes(2, gpus=4)
    await replace_all_pods(place, 4)


async def queue_means_nothing(place: Place) -> None:
    """The gang runs, whatever queue of another scheduler its label names."""
    await place.nodes(1, gpus=2)
    pcs = place.workers("train", 2)
    pcs.label(labels.QUEUE, "nowhere")
    await place.apply(pcs)
    await place.runs("train-0", 2)


async def nodes_without_labels(place: Place) -> None:
    """The scheduler reads the labels of nodes, and no node has one: the gang waits until some do."""
    names = await place.nodes(4, gpus=2)
    await place.apply(packed(place, "train", 4, required="rack"))
    await place.until("the PodGang says why", lambda: place.waits_for("train-0", *REFUSED))
    assert place.ever_bound() == []
    for name in names[:2]:
        named = {RACK: f"{place.namespace}-rack", BLOCK: f"{place.namespace}-block"}
        await place.client.patch(Node, name, {"metadata": {"labels": named}})
    await place.runs("train-0", 4)
    assert await domains(place, RACK) == {f"{place.namespace}-rack"}


async def topology_refused(place: Place) -> None:
    """There is nothing to set up: a set that asks for topology is refused."""
    with pytest.raises(ApiError, match="topology"):
        await place.apply(packed(place, "train", 4, required="rack"))


async def restarts_beside_larger_pods(place: Place) -> None:
    """The gang is completed; the one that waits has pods larger than any node, so the order does not matter."""
    await restart_in_mid_gang(place, place.workers("waits", 2, gpus=5), 2)
