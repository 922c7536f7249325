"""Names used again: a new gang is judged by itself, not by one of the same name before it."""

from __future__ import annotations

from tests.schedulers.place import Place
from tests.schedulers.stories.starting import NO_ROOM
from tests.schedulers.story import story

TIMES = 10


@story("created again under the same name ten times, it runs whole each time")
async def again_fitting(place: Place) -> None:
    """Nothing of the deleted gang counts for the new one."""
    await place.nodes(2, gpus=2)
    for _ in range(TIMES):
        await place.apply(place.workers("train", 4))
        await place.runs("train-0", 4)
        await place.delete("train")


@story("created again under the same name ten times where it does not fit, nothing is ever bound")
async def again_without_room(place: Place) -> None:
    """A gang of that name ran before; the new ones ask for more than there is."""
    await place.nodes(2, gpus=2)
    await place.apply(place.workers("train", 4))
    await place.runs("train-0", 4)
    await place.delete("train")
    for _ in range(TIMES):
        await place.apply(place.workers("train", 5))
        await place.until("the PodGang says why", lambda: place.waits_for("train-0", *NO_ROOM))
        assert place.ever_bound() == []
        await place.delete("train")
