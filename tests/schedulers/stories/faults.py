"""Things that go wrong: unknown queues, a scheduler that restarts, a backend that is off."""

from __future__ import annotations

from spinney.api import labels
from tests import make
from tests.schedulers.place import Place
from tests.schedulers.stories.starting import NO_ROOM
from tests.schedulers.story import story

_QUEUE_LABELS = {
    "kai": labels.QUEUE,
    "volcano": labels.VOLCANO_QUEUE,
    "koordinator": labels.KOORDINATOR_QUOTA,
    "yunikorn": labels.YUNIKORN_QUEUE,
}


@story("an unknown queue is told on the gang")
async def unknown_queue(place: Place) -> None:
    """Nothing is bound, and the PodGang names the queue."""
    await place.nodes(1, gpus=2)
    pcs = place.workers("train", 2)
    name = "root.nowhere" if place.entry.backend == "yunikorn" else "nowhere"
    key = _QUEUE_LABELS.get(place.entry.backend, labels.QUEUE)
    pcs.label(key, name)
    pcs.annotate(key, name)
    await place.apply(pcs)
    await place.until("the PodGang names the queue", lambda: place.waits_for("train-0", name))
    assert place.ever_bound() == []


@story("a scheduler that restarts in mid-gang completes it", alone=True)
async def scheduler_restarts(place: Place) -> None:
    """The scheduler goes as soon as the gang is released to it; another gang runs meanwhile, a third has no room."""
    await restart_in_mid_gang(place, place.workers("waits", 7), 7)


async def restart_in_mid_gang(place: Place, third: make.SetBuilder, pods: int) -> None:
    """Restart the scheduler while a gang starts, another runs and a third, `waits` with so many pods, cannot."""
    # No GPU more than the two need: whatever is held for nobody is missing.
    await place.nodes(2, gpus=3)
    await place.apply(place.workers("before", 2))
    await place.runs("before-0", 2)
    kept = {pod.uid for pod in place.living("before-0")}
    await place.apply(place.workers("during", 4))
    await place.until("it is released", lambda: any(not pod.spec.scheduling_gates for pod in place.living("during-0")))
    await place.stage.stop_scheduler()
    await place.apply(third)
    await place.until("the pods of the third exist", lambda: len(place.living("waits-0")) == pods)
    await place.stage.start_scheduler()
    await place.runs("during-0", 4)
    await place.until("the third says why it waits", lambda: place.waits_for("waits-0", *NO_ROOM))
    assert place.ever_bound("waits-0") == []
    assert {pod.uid for pod in place.running("before-0")} == kept


@story("a backend that is switched off and on catches up", alone=True)
async def backend_off_and_on(place: Place) -> None:
    """Meanwhile gangs wait whole; those that run stay."""
    await place.nodes(2, gpus=2)
    await place.apply(place.workers("before", 2))
    await place.runs("before-0", 2)
    kept = {pod.uid for pod in place.living("before-0")}
    await place.stage.stop_backend()
    await place.apply(place.workers("during", 2))
    await place.until("its pods wait", lambda: len(place.living("during-0")) == 2)
    assert place.ever_bound("during-0") == []
    await place.stage.start_backend()
    await place.runs("during-0", 2)
    assert {pod.uid for pod in place.running("before-0")} == kept
