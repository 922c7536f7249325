"""Topology on a cluster that is not set up for it: told beforehand if it can be known, else when it is broken."""

from __future__ import annotations

from spinney.api import reasons
from spinney.api.pod import Pod
from tests.schedulers import setups
from tests.schedulers.place import Place
from tests.schedulers.stories.topology import REFUSED, domains, packed, racks
from tests.schedulers.story import story
from tests.schedulers.topology import RACK


@story("topology that is not set up: required waits, preferred runs, and both say what is missing", alone=True)
async def topology_not_set_up(place: Place) -> None:
    """`spinney backends` says it, too. What nobody can know beforehand is told when a gang is placed wrongly."""
    await racks(place)
    try:
        for lack in setups.LACKS[place.entry.name]:
            await _told_while_missing(place, lack)
        await _switched_off_unseen(place)
    finally:
        await setups.with_topology(place)


async def _told_while_missing(place: Place, lack: setups.Lack) -> None:
    """Once it is there, the gang that requires it runs in one rack."""
    await lack.remove(place)
    await _start_backend_again(place)
    await place.apply(packed(place, "strict", 4, required="rack"))
    await place.until("strict says what is missing", lambda: lack.words in place.reason("strict-0"))
    await place.apply(packed(place, "loose", 4, preferred="rack"))
    await place.runs("loose-0", 4)
    await place.until("loose says what was lost", lambda: lack.words in place.told("loose-0", "Downgraded"))
    await place.stage.until_printed(lack.listed, "backends")
    assert place.ever_bound("strict-0") == []
    await place.delete("loose")
    await lack.restore(place)
    await place.runs("strict-0", 4)
    assert len(await domains(place, RACK)) == 1
    await place.delete("strict")


async def _start_backend_again(place: Place) -> None:
    """A backend that has just started knows the settings as they are now, not as they were."""
    await place.stage.stop_backend()
    await place.stage.start_backend()


async def _switched_off_unseen(place: Place) -> None:
    """Five pods require a rack of four GPUs, and the scheduler's configuration is not where anybody looks."""
    await setups.as_shipped(place)
    await setups.hide_settings(place.stage)
    await _start_backend_again(place)
    await place.apply(packed(place, "train", 5, required="rack"))

    def told() -> bool:
        waits = place.waits_for("train-0", *REFUSED) and not place.ever_bound()
        return place.holds("train-0", "TopologyViolated") or waits

    await place.until("it is told", told)
    await place.delete("train")


@story("required topology that someone breaks is told on the gang", alone=True)
async def broken_by_hand(place: Place) -> None:
    """Pods are bound by hand, two in each of two racks: a condition, an event, and a score that says so."""
    await racks(place)
    await place.stage.stop_scheduler()
    try:
        await place.apply(packed(place, "train", 4, required="rack"))
        await place.until("it is released", lambda: _released(place) == 4)
        for pod, node in zip(place.living(), (0, 0, 2, 2), strict=True):
            target = {"target": {"kind": "Node", "name": place.node_names[node]}}
            await place.client.post(Pod, pod.key, "binding", {"metadata": {"name": pod.name}, **target})
    finally:
        await place.stage.start_scheduler()
    for rack in ("rack-a1 (2)", "rack-a2 (2)"):
        await place.until("it is told", lambda rack=rack: rack in place.told("train-0", "TopologyViolated"))
    # One block, two racks where one would do, two hosts.
    await place.until("the score says so", lambda: place.score("train-0") == 0.8333)
    await place.event(reasons.REQUIRED_TOPOLOGY_BROKEN)


def _released(place: Place) -> int:
    return sum(not pod.spec.scheduling_gates for pod in place.living())
