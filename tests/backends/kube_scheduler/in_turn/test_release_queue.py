"""Which gangs are released or wait, and which are looked at again when something changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from spinney.api.core import Node
from spinney.api.meta import Object, convert
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.volumes import Reach
from spinney.backends.gang_pods import gang_names
from spinney.backends.interface import Readiness
from spinney.backends.kube_scheduler.in_turn import release_round
from spinney.backends.kube_scheduler.in_turn.placement import place
from spinney.backends.kube_scheduler.in_turn.release_plan import Verdict
from spinney.backends.kube_scheduler.in_turn.release_queue import ReleaseQueue
from spinney.kube.caches.cache import Cache, Change
from tests import make

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SYNCED = Readiness(True, "Synced")
GATE = "scheduling.k8s.io/workload"


class Shelf:
    """A watch cache that a test fills by hand."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Any] = {}
        self.handlers: list[Callable[[Change[Any]], None]] = []

    def get(self, key: tuple[str, str]) -> Any:
        return self.objects.get(key)

    def by(self, _: str, value: str) -> list[Any]:
        return [pod for pod in self.objects.values() if value in gang_names(pod)]

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self.objects.values()))

    def on_change(self, handler: Callable[[Change[Any]], None]) -> None:
        self.handlers.append(handler)

    def put(self, new: Object | None, key: tuple[str, str]) -> None:
        old = self.objects.pop(key, None)
        if new is not None:
            self.objects[key] = new
        for handler in self.handlers:
            handler(Change(old, new))


class Unclaimed:
    """No pod has a claim."""

    def reach(self, pod: Pod) -> Reach:
        return Reach()


class ReleaseQueueView:
    """Gangs, pods and nodes around a release queue; `asked` are the gangs that it enqueued."""

    def __init__(self) -> None:
        self.gangs, self.pods, self.nodes = Shelf(), Shelf(), Shelf()
        self.asked: list[str] = []
        self.keeper = ReleaseQueue(
            cast(Cache[PodGang], self.gangs),
            cast(Cache[Pod], self.pods),
            cast(Cache[Node], self.nodes),
            Unclaimed(),
            lambda _, name: self.asked.append(name),
        )

    def node(self, name: str, gpus: int) -> None:
        """Add a node."""
        self.nodes.put(make.node(name, gpus).typed(Node), ("", name))

    def gang(
        self, name: str, pods: int, *, on: str = "", free: bool = False, condition: str = "", attempts: int = 0
    ) -> None:
        """A gang of one-GPU pods: gated, released, or on a node; and its BackendReady condition."""
        builder = make.gang(name).group("w", pods)
        builder.object["metadata"]["creationTimestamp"] = NOW.isoformat()
        if attempts:
            builder.annotate("grove.io/release-attempts", " ".join(map(str, range(attempts))))
        if condition:
            status, reason = condition.split("/")
            condition = {"type": "BackendReady", "status": status, "reason": reason, "message": "said before"}
            condition["lastTransitionTime"] = NOW.isoformat()
            builder.object["status"] = {"phase": "Pending", "conditions": [condition]}
        self.gangs.put(convert(PodGang, builder.build()), ("default", name))
        for index in range(pods):
            pod = make.pod(f"{name}-w-{index}").gpus(1).label("grove.io/podgang", name)
            pod.label("grove.io/podclique", f"{name}-w").label("grove.io/podclique-pod-index", str(index))
            if on:
                pod.on(on)
            elif not free:
                pod.gate(GATE)
            self.pods.put(convert(Pod, pod.build()), ("default", f"{name}-w-{index}"))

    def admit(self, name: str, now: datetime = NOW) -> Verdict:
        """Ask about one gang."""
        return self.keeper.admit(self.gangs.get(("default", name)), SYNCED, now)


@pytest.fixture
def world() -> ReleaseQueueView:
    """A cluster of four GPUs."""
    view = ReleaseQueueView()
    view.node("n", 4)
    return view


def test_while_one_is_being_placed_those_that_might_block_it_wait(world: ReleaseQueueView) -> None:
    """The first that fits is released, and looked at again after five minutes; the next does not fit beside it."""
    world.gang("a", 2)
    world.gang("b", 3)
    first = world.admit("a")
    assert (first.readiness.reason, first.again) == ("Released", 300.0)
    assert world.admit("b").readiness.reason == "WaitsForOtherGang"


def test_gangs_with_room_beside_each_other_go_at_once(world: ReleaseQueueView) -> None:
    """Pods that are being placed count, even while they still have their gates."""
    world.gang("a", 2)
    world.gang("b", 1)
    world.gang("c", 1)
    world.gang("d", 1)
    assert [world.admit(name).readiness.reason for name in "abc"] == ["Released"] * 3
    assert world.admit("d").readiness.reason == "WaitsForOtherGang"


def test_a_grant_is_kept_until_it_is_told(world: ReleaseQueueView) -> None:
    """A gang whose condition could not be written gets the same verdict again, and counts meanwhile."""
    world.gang("a", 4)
    assert world.admit("a").readiness.reason == "Released"
    world.gang("b", 1)
    assert world.admit("b").readiness.reason == "WaitsForOtherGang"
    assert world.admit("a").readiness.reason == "Released"


def test_nobody_overtakes_the_one_whose_turn_is_next(world: ReleaseQueueView) -> None:
    """Else a stream of small gangs would keep a larger one waiting for ever."""
    world.gang("a", 2)
    world.gang("b", 4)
    world.admit("a")
    world.admit("b")
    world.gang("c", 1)
    assert world.admit("c").readiness.reason == "WaitsForOtherGang"


def test_room_that_somebody_else_took_is_not_given_away(world: ReleaseQueueView) -> None:
    """A pod of nobody's gang gets a node while a gang is being placed."""
    world.gang("a", 2)
    world.admit("a")
    world.pods.put(make.pod("other").gpus(2).on("n").typed(Pod), ("default", "other"))
    world.gang("b", 2)
    assert world.admit("b").readiness.reason == "WaitsForOtherGang"


def test_when_it_is_bound_all_that_wait_are_asked_again(world: ReleaseQueueView) -> None:
    """Every waiting gang is enqueued, whichever noticed the change."""
    world.gang("a", 2)
    world.gang("b", 3)
    world.gang("c", 1)
    world.admit("a")
    world.admit("b")
    world.admit("c")
    world.gang("a", 2, on="n")
    world.asked.clear()
    assert world.admit("b").readiness.reason == "DoesNotFitYet"
    assert "c" in world.asked
    assert world.admit("c").readiness.reason == "Released"
    assert world.admit("a").readiness == SYNCED


def test_what_was_said_about_room_holds_while_another_is_placed(world: ReleaseQueueView) -> None:
    """A message that changed with every release would be written to every waiting gang."""
    world.gang("a", 2)
    world.gang("b", 3)
    world.admit("a")
    world.admit("b")
    world.gang("huge", 9, condition="False/DoesNotFitYet")
    verdict = world.admit("huge").readiness
    assert (verdict.reason, verdict.message) == ("DoesNotFitYet", "said before")


@pytest.mark.parametrize("event", ["node", "pod"])
def test_new_room_stirs_those_that_wait(world: ReleaseQueueView, event: str) -> None:
    """A node that comes, or a pod that goes."""
    world.gang("old", 4, on="n")
    world.gang("a", 2)
    assert world.admit("a").readiness.reason == "DoesNotFitYet"
    world.asked.clear()
    if event == "node":
        world.node("m", 4)
    else:
        for index in range(4):
            world.pods.put(None, ("default", f"old-w-{index}"))
    assert "a" in world.asked
    assert world.admit("a").readiness.reason == "Released"


def test_a_restart_finds_who_was_let_go(world: ReleaseQueueView) -> None:
    """The state is in the gang's own condition."""
    world.gang("a", 2, free=True, condition="True/Released")
    world.gang("b", 3)
    assert world.admit("b").readiness.reason == "WaitsForOtherGang"
    assert world.admit("a", NOW + timedelta(minutes=4)).again == 60.0


def test_a_gang_that_is_not_bound_in_time_is_made_anew_and_gives_up_its_turn(world: ReleaseQueueView) -> None:
    """Five minutes after its release."""
    world.gang("a", 2, free=True, condition="True/Released")
    world.gang("b", 3)
    world.admit("b")
    verdict = world.admit("a", NOW + timedelta(minutes=5))
    assert verdict.recreate
    assert verdict.readiness.reason == "Recreated"
    assert world.admit("b").readiness.reason == "Released"


def test_a_gang_whose_gates_are_still_on_keeps_its_turn(world: ReleaseQueueView) -> None:
    """The operator may be removing the gates right now: the release is not taken back."""
    world.gang("a", 2, condition="True/Released")
    world.gang("old", 4, on="n")
    assert world.admit("a").readiness.reason == "Released"
    assert world.admit("a", NOW + timedelta(minutes=5)).recreate


def test_a_gang_that_is_told_to_wait_holds_nobody(world: ReleaseQueueView) -> None:
    """Two gangs must never wait for each other."""
    world.gang("a", 2, condition="True/Released")
    world.pods.put(None, ("default", "a-w-0"))
    world.pods.put(None, ("default", "a-w-1"))
    assert world.admit("a").readiness.reason == "WaitsForPods"
    world.gang("a", 2, condition="False/WaitsForPods")
    world.gang("b", 3)
    assert world.admit("b").readiness.reason == "Released"
    assert world.admit("a").readiness.reason == "WaitsForOtherGang"


def test_a_gang_that_has_rested_is_tried_again(world: ReleaseQueueView) -> None:
    """It is released when its back-off is over; nothing else needs to change."""
    world.gang("a", 2, condition="False/Recreated", attempts=1)
    resting = world.admit("a", NOW + timedelta(seconds=10))
    assert (resting.readiness.reason, resting.again) == ("Recreated", 50.0)
    assert world.admit("a", NOW + timedelta(seconds=60)).readiness.reason == "Released"


def test_an_interrupted_recreation_is_finished(world: ReleaseQueueView) -> None:
    """A backend that stopped between the condition and the deletion continues there."""
    world.gang("a", 2, free=True, condition="False/Recreated")
    assert world.admit("a").recreate


def test_a_gang_that_ran_once_gets_its_replacements_at_once(world: ReleaseQueueView) -> None:
    """Only a gang whose pods are all gated waits for its turn."""
    world.gang("a", 2, on="n", condition="True/Synced")
    world.pods.put(None, ("default", "a-w-1"))
    pod = make.pod("a-w-2").gpus(1).label("grove.io/podgang", "a").label("grove.io/podclique", "a-w").gate(GATE)
    world.pods.put(convert(Pod, pod.build()), ("default", "a-w-2"))
    assert world.admit("a").readiness == SYNCED


def test_pods_that_are_not_known_yet_are_waited_for(world: ReleaseQueueView) -> None:
    """The gang's references may be newer than the cache of pods."""
    world.gang("a", 2)
    world.pods.put(None, ("default", "a-w-1"))
    assert world.admit("a").readiness.reason == "WaitsForPods"
    world.pods.put(None, ("default", "a-w-0"))
    assert world.admit("a").readiness.reason == "WaitsForPods"


def test_a_deleted_gang_gives_up_its_turn(world: ReleaseQueueView) -> None:
    """A deleted gang blocks no other."""
    world.gang("a", 2)
    world.gang("b", 3)
    world.admit("a")
    world.admit("b")
    world.gangs.put(None, ("default", "a"))
    assert "b" in world.asked
    assert world.admit("b").readiness.reason == "Released"


def test_gangs_that_fit_nowhere_are_tried_once_each(world: ReleaseQueueView, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gang that comes is tried alone, and gangs with the same needs share an answer: 1,500 stalled the process."""
    tried: list[int] = []

    def counted(pods: Sequence[Pod], *rest: Any) -> Any:
        tried.append(len(pods))
        return place(pods, *rest)

    monkeypatch.setattr(release_round, "place", counted)
    for number in range(60):
        world.gang(f"g{number}", 5 + number % 3)
        assert world.admit(f"g{number}").readiness.reason == "DoesNotFitYet"
    assert sorted(tried) == [5, 6, 7]


def test_a_round_goes_on_where_it_was(world: ReleaseQueueView, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the queue tries a bounded part of what waits, in its order, and asks for the rest again."""
    monkeypatch.setattr(release_round.ReleaseRound.go_on, "__defaults__", (1,))
    names = [f"g{number}" for number in range(5)]
    for name in names:
        world.gang(name, 5)
        world.admit(name)
    world.asked.clear()
    world.keeper.wake()
    assert world.admit("g4").readiness.reason == "WaitsForOtherGang"
    assert world.asked[-1] == "g4"
    assert [world.admit(name).readiness.reason for name in names] == ["DoesNotFitYet"] * 5


def test_a_gang_that_went_during_a_round_is_not_released(
    world: ReleaseQueueView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name may come back, and must be decided on again."""
    monkeypatch.setattr(release_round.ReleaseRound.go_on, "__defaults__", (1,))
    for name in ("a", "b", "c"):
        world.gang(name, 2)
    world.gangs.put(None, ("default", "b"))
    assert world.admit("a").readiness.reason == "Released"
    world.gang("b", 4)
    assert world.admit("b").readiness.reason == "WaitsForOtherGang"
