"""How gangs start: whole, or not at all with a reason."""

from __future__ import annotations

from tests.schedulers.place import Place
from tests.schedulers.story import story

# What schedulers, and our release in turn, say of a gang that finds no room.
NO_ROOM = (
    "insufficient",
    "nvidia.com/gpu",
    "enough resources",
    "NotEnoughResources",
    "cluster resources",
    "fit together",
)


@story("a gang that fits runs whole")
async def fits(place: Place) -> None:
    """Two roles, all pods; the PodGang says Running."""
    await place.nodes(2, gpus=2)
    pcs = place.set("train")
    place.role(pcs, "master", 1)
    place.role(pcs, "workers", 3)
    await place.apply(pcs)
    await place.runs("train-0", 4)

    def told() -> bool:
        gang = place.gang("train-0")
        return gang is not None and gang.status.phase == "Running"

    await place.until("the PodGang says Running", told)


@story("a gang that does not fit has nothing bound, and says why")
async def does_not_fit(place: Place) -> None:
    """Three pods, room for two: none is ever bound, and the PodGang repeats the reason."""
    await place.nodes(2, gpus=1)
    await place.apply(place.workers("train", 3))
    await place.until("the PodGang says why", lambda: place.waits_for("train-0", *NO_ROOM))
    assert place.ever_bound() == []


@story("`spinney explain` and `spinney status` say why it waits")
async def explained(place: Place) -> None:
    """By the name of the gang and of the set."""
    await place.nodes(2, gpus=1)
    await place.apply(place.workers("train", 3))
    await place.until("the PodGang says why", lambda: place.waits_for("train-0", *NO_ROOM))
    for command in (("explain", "gang/train-0"), ("explain", "set/train"), ("status",)):
        printed = await place.spinney(*command)
        assert any(word.lower() in printed.lower() for word in NO_ROOM), printed
        assert "train" in printed


@story("it starts when room comes")
async def starts_when_room_comes(place: Place) -> None:
    """A node more, and all of it runs."""
    await place.nodes(2, gpus=1)
    await place.apply(place.workers("train", 3))
    await place.until("the PodGang says why", lambda: place.waits_for("train-0", *NO_ROOM))
    assert place.ever_bound() == []
    await place.nodes(1, gpus=1)
    await place.runs("train-0", 3)


@story("pods beyond the minimum run where there is room")
async def surplus(place: Place) -> None:
    """Six pods, two needed, room for four: four run."""
    await place.nodes(2, gpus=2)
    await place.apply(place.workers("serve", 6, 2))
    await place.runs("serve-0", 4)


@story("two gangs, room for one: one runs, the other waits whole and runs later")
async def competing(place: Place) -> None:
    """Neither takes a part of what the other needs."""
    await place.nodes(2, gpus=2)
    for name in ("one", "two"):
        await place.apply(place.workers(name, 3))
    await place.until("one of them runs", lambda: {len(place.running(f"{name}-0")) for name in ("one", "two")} >= {3})
    winner, loser = ("one", "two") if len(place.running("one-0")) == 3 else ("two", "one")
    await place.until("the other says why it waits", lambda: bool(place.reason(f"{loser}-0")))
    assert place.ever_bound(f"{loser}-0") == []
    await place.delete(winner)
    await place.runs(f"{loser}-0", 3)


@story("a role that cannot be placed holds back the whole gang")
async def role_without_room(place: Place) -> None:
    """Its router fits, its workers ask for more GPUs than a node has."""
    await place.nodes(2, gpus=2)
    pcs = place.set("serve")
    place.role(pcs, "router", 1)
    place.role(pcs, "workers", 1, gpus=4)
    await place.apply(pcs)
    await place.until("the PodGang says why", lambda: place.waits_for("serve-0", *NO_ROOM))
    assert place.ever_bound() == []
