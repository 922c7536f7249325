"""How a story ends where a scheduler cannot tell it: what is kept, and what a user reads."""

from __future__ import annotations

from spinney.api import labels
from tests.schedulers.place import Place
from tests.schedulers.stories.changing import replace_all_pods


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
