"""Large gangs do not starve: nodes are kept for them, and others use those only as long as they can leave in time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from spinney.scheduler.config import Config
from spinney.scheduler.place.reservations import KEPT, Reservation, Reservations
from spinney.scheduler.plan import Plan, plan
from spinney.scheduler.state import status as st
from spinney.scheduler.state.problems import QueueKept, Reserved
from spinney.scheduler.state.specs import Constraint, TopologySpec
from spinney.scheduler.why.texts import message, refusal
from tests.scheduler.clusters import NOW, Cluster, assume, outcome, statuses
from tests.scheduler.random_clusters import clusters, picture

LONG_AGO = Reservations(0.0)
CONFIG = Config(staleness_grace=-1)


def cycle(cluster: Cluster, kept: Reservations | None = LONG_AGO, now: float = NOW, config: Config = CONFIG) -> Plan:
    return plan(cluster.state, config, now, kept)


def busy(quota: float = 16, **job: Any) -> Cluster:
    """Two full nodes, n0 with one task that ends last, and a gang that wants one of them."""
    cluster = Cluster(4, 4).queue("q", quota).queue("other", 8)
    for number in range(8):
        cluster.job(f"r{number}", "q", [f"n{number % 2}"], preemptible=False)
    return cluster.job("gang", "q", ["", ""], gpus=2, **job)


def held(made: Plan) -> Reservation:
    assert made.reservations is not None
    (reservation,) = made.reservations.held
    return reservation


def ends(cluster: Cluster, *keys: str) -> Cluster:
    for key in keys:
        cluster.state.drop_task(key)
    return cluster


def kept_on_n0() -> tuple[Cluster, Reservations]:
    """A gang that n0 is kept for, of whose four GPUs one is free."""
    cluster = ends(busy(), "r0-0")
    made = cycle(cluster)
    assert held(made).nodes == ("n0",)
    assert made.reservations is not None
    return cluster, made.reservations


class Stream:
    """A queue of small jobs that never ends, and one gang, in virtual time."""

    def __init__(self, kept: Reservations | None, lives: list[int], preemptible: bool) -> None:
        self.cluster = Cluster(4, 4, 4).queue("q", 12)
        self.kept = kept
        self.lives = lives
        self.preemptible = preemptible
        self.ends: dict[str, float] = {}
        self.made = 0

    def gang_starts(self, until: float) -> float | None:
        """When the gang, which comes after a while, is bound; None if not in time."""
        for now in range(0, int(until), 40):
            for key in [key for key, end in self.ends.items() if end <= now]:
                self._gone(key)
            while sum(job.pending for job in self.cluster.state.jobs.values()) < 12:
                self.made += 1
                self._add(f"s{self.made}", [""], 1, now, preemptible=self.preemptible)
            if now == 200:
                self._add("gang", ["", ""], 4, now)
            made = plan(self.cluster.state, CONFIG, float(now), self.kept)
            self.kept = made.reservations
            for key, (status, node, _) in outcome(made).items():
                if status == st.BINDING and key.startswith("gang"):
                    return now
                if status == st.BINDING:
                    assume(self.cluster.state, key, st.RUNNING, node)
                    self.ends[key] = now + self.lives[len(self.ends) % len(self.lives)]
                elif status == st.RELEASING:
                    self._gone(key)
        return None

    def _add(self, name: str, tasks: list[str], gpus: int, now: float, **more: Any) -> None:
        self.cluster.job(name, "q", tasks, gpus=gpus, **more)
        self.cluster.state.set_job(replace(self.cluster.state.jobs[name].spec, created=float(now)))

    def _gone(self, key: str) -> None:
        self.ends.pop(key, None)
        self.cluster.state.drop_task(key)
        self.cluster.state.drop_job(key.rpartition("-")[0])


@given(some.lists(some.integers(100, 900), min_size=2, max_size=7), some.booleans())
@settings(max_examples=6)
def test_a_large_gang_starts_beside_a_stream_of_small_jobs(lives: list[int], preemptible: bool) -> None:
    """Jobs that are older have their turn, then it gets its nodes, and waits for those who were there before it."""
    started = Stream(Reservations(0.0), lives, preemptible).gang_starts(4000)
    assert started is not None
    assert started <= 200 + CONFIG.reserve_after + 2 * max(lives) + 80


def test_without_a_past_a_large_gang_starves() -> None:
    """The same stream, each cycle on its own: room for a whole node at once never comes."""
    assert Stream(None, [300, 450, 700], preemptible=False).gang_starts(6000) is None


def test_a_first_cycle_keeps_nothing() -> None:
    """A gang earns nodes by waiting under the scheduler's eyes, not by its age."""
    assert cycle(busy(), None).reservations is None
    young = cycle(busy(), Reservations(NOW - CONFIG.reserve_after + 1))
    assert young.reservations is not None
    assert not young.reservations.held


def test_the_emptiest_nodes_are_kept() -> None:
    """Of two nodes the one with less to lose; the gang is told, in stable words."""
    cluster, kept = kept_on_n0()
    (problem,) = [each for each in cycle(cluster, kept, NOW + 60).problems["gang"] if isinstance(each, Reserved)]
    assert problem == Reserved(1, NOW)
    assert message(problem).startswith("1 nodes are kept for this gang since")


def test_kept_nodes_are_given_up_only_for_free_ones() -> None:
    """A node that empties further than the kept one does not replace it: its tasks may be younger. A free one does."""
    cluster = Cluster(4, 4).queue("q", 16)
    for number in range(8):
        cluster.job(f"r{number}", "q", [f"n{number % 2}"], preemptible=False)
    made = cycle(cluster.job("gang", "q", [""], gpus=4))
    assert held(made).nodes == ("n0",)
    assert held(cycle(ends(cluster, "r1-0", "r3-0"), made.reservations)).nodes == ("n0",)
    cluster.job("pair", "q", ["", ""], gpus=4, priority=90)
    pair = Reservations(0.0, (Reservation("pair", NOW, ("n0", "n1")),))
    assert held(cycle(cluster.node("n2", 4), pair)).nodes == ("n1", "n2")


def test_nodes_that_do_not_empty_are_given_up_at_last() -> None:
    """A service that never ends does not hold the gang for ever: other nodes are tried, each time for twice as long."""
    cluster, kept = kept_on_n0()
    first = held(cycle(cluster, kept, NOW + 3000))
    assert (first.nodes, first.patience) == (("n0",), 3600)
    second = held(cycle(cluster, kept, NOW + 3601))
    assert (second.nodes, second.in_vain, second.patience) == (("n1",), ("n0",), 7200)


def test_a_queue_whose_share_is_too_small_is_not_kept_anything() -> None:
    """What the queue could not have even if it held nothing else is not worth emptying nodes for."""
    cluster = Cluster(4, 4).queue("q", 3, weight=0)
    for number in range(8):
        cluster.job(f"r{number}", "q", [f"n{number % 2}"])
    made = cycle(cluster.job("gang", "q", ["", ""], gpus=2))
    assert made.reservations == LONG_AGO


def test_one_gang_of_each_queue_and_no_node_twice() -> None:
    """Each queue's first gang has nodes of its own, as many gangs as are allowed."""
    cluster = busy(8).job("second", "q", ["", ""], gpus=2).job("theirs", "other", ["", ""], gpus=2, priority=10)
    made = cycle(cluster, config=replace(CONFIG, actions=("allocate",)))
    assert made.reservations is not None
    assert {reservation.job for reservation in made.reservations.held} == {"gang", "theirs"}
    assert len({node for reservation in made.reservations.held for node in reservation.nodes}) == 2
    fewer = cycle(cluster, config=replace(CONFIG, actions=("allocate",), reservations=1))
    assert fewer.reservations is not None
    assert len(fewer.reservations.held) == 1


def test_a_required_domain_is_kept_whole() -> None:
    """The nodes are all in one rack, though emptier ones are in another."""
    cluster = Cluster().queue("q", 16)
    for number, rack in enumerate("abba"):
        cluster.node(f"n{number}", 4, rack=rack)
    cluster.state.set_topology(TopologySpec("tree", (("rack", ""),)))
    for node, count in (("n0", 2), ("n1", 1), ("n2", 4), ("n3", 2)):
        for number in range(count):
            cluster.job(f"r-{node}-{number}", "q", [node], preemptible=False)
    cluster.job("gang", "q", ["", ""], gpus=4, inside=Constraint("tree", required="rack"))
    assert held(cycle(cluster)).nodes == ("n0", "n3")


@pytest.mark.parametrize(
    ("job", "lifetime", "may"),
    [
        ({"preemptible": True}, None, True),
        ({"preemptible": False}, None, False),
        ({"preemptible": False}, 100.0, True),
        ({"preemptible": False}, 101.0, False),
        ({"preemptible": False, "priority": 90}, None, True),
    ],
    ids=["preemptible", "stays", "ends in time", "ends too late", "more urgent"],
)
def test_who_may_use_kept_nodes(job: dict[str, Any], lifetime: float | None, may: bool) -> None:
    """Guests that can leave, pods that end before the last one the gang waits for, and whoever goes before it."""
    cluster, _ = kept_on_n0()
    cluster.state.set_task(replace(cluster.state.tasks["r2-0"].spec, ends=NOW + 100))
    made = cycle(cluster)
    cluster.job("small", "q", [""], **job)
    cluster.state.set_task(replace(cluster.state.tasks["small-0"].spec, lifetime=lifetime))
    placed = cycle(cluster, made.reservations)
    assert ("small-0" in outcome(placed)) is may
    if not may:
        assert refusal(KEPT) in message(placed.problems["small"][0])


def test_what_is_guaranteed_goes_before_what_is_borrowed() -> None:
    """A gang beyond its queue's quota does not keep nodes from a queue that is within its own."""
    for quota, may in ((16, False), (0, True)):
        cluster = Cluster(4).queue("q", quota).queue("owed", 2).job("r", "q", ["n0"], gpus=3, preemptible=False)
        cluster.job("gang", "q", ["", ""], gpus=2)
        kept = Reservations(0.0, (Reservation("gang", NOW, ("n0",)),))
        placed = cycle(cluster.job("small", "owed", [""], preemptible=False), kept)
        assert ("small-0" in outcome(placed)) is may


def test_protected_jobs_are_no_guests() -> None:
    """A job that may not be evicted for a while would make the gang wait for it."""
    cluster, kept = kept_on_n0()
    cluster.job("small", "q", [""])
    cluster.state.set_queue(replace(cluster.state.queue_specs["q"], preempt_min_runtime=60.0))
    assert "small-0" not in outcome(cycle(cluster, kept))


def with_guests() -> tuple[Cluster, Plan]:
    """n0 is kept: one of its tasks has to end, three are guests."""
    cluster, kept = kept_on_n0()
    for number in range(3):
        ends(cluster, f"r{2 * number}-0") if number else None
        cluster.job(f"guest{number}", "q", [""])
        made = cycle(cluster, kept)
        assert outcome(made)[f"guest{number}-0"][1] == "n0"
        assume(cluster.state, f"guest{number}-0", st.RUNNING, "n0")
        assert made.reservations is not None
        kept = made.reservations
    return cluster, made


def test_guests_leave_when_that_is_enough() -> None:
    """While the last task that is none still runs nobody is evicted; then all go, and the gang has their place."""
    cluster, made = with_guests()
    assert held(made).guests == ("guest0-0", "guest1-0", "guest2-0")
    assert not cycle(cluster, made.reservations).decisions
    made = cycle(ends(cluster, "r6-0"), made.reservations)
    evicted = [
        (reservation.task, reservation.action, reservation.beneficiary)
        for reservation in made.decisions
        if reservation.kind == "evict"
    ]
    assert evicted == [(f"guest{number}-0", "reservation", "gang") for number in range(3)]
    assert {key: outcome(made)[key][:2] for key in ("gang-0", "gang-1")} == {
        "gang-0": (st.PIPELINED, "n0"),
        "gang-1": (st.PIPELINED, "n0"),
    }
    for number in range(3):
        cluster.state.drop_task(f"guest{number}-0")
    cluster.job("small", "q", [""], gpus=3)
    made = cycle(cluster, made.reservations)
    assert statuses(made) == {"gang-0": "Binding", "gang-1": "Binding"}
    assert made.reservations is not None
    assert "gang" not in [reservation.job for reservation in made.reservations.held]


def test_only_guests_in_the_way_leave() -> None:
    """When the rest of the node is enough for the gang, a guest stays; the least deserving go first."""
    cluster, made = with_guests()
    cluster.state.drop_job("gang")
    cluster.job("gang", "q", [""], gpus=2)
    cluster.state.set_job(replace(cluster.state.jobs["gang"].spec, created=0.0))
    made = cycle(cluster, made.reservations)
    assert [decision.task for decision in made.decisions if decision.kind == "evict"] == ["guest1-0", "guest2-0"]


def test_nobody_is_placed_where_placing_is_off() -> None:
    """Without the action that places gangs, those that nodes are kept for wait as well."""
    cluster, kept = kept_on_n0()
    ends(cluster, *(f"r{number}-0" for number in range(8)))
    assert not cycle(cluster, kept, config=replace(CONFIG, actions=("stalegangeviction",))).decisions
    assert cycle(cluster, kept).decisions


def test_a_gang_that_goes_keeps_nothing() -> None:
    """With the gang its reservation ends; a new gang of the same name waits its own time."""
    cluster, kept = kept_on_n0()
    cluster.state.drop_job("gang")
    cluster.job("small", "q", [""], preemptible=False)
    assert outcome(cycle(cluster, kept))["small-0"][1] == "n0"
    cluster.job("gang", "q", ["", ""], gpus=2)
    cluster.state.set_job(replace(cluster.state.jobs["gang"].spec, created=NOW + 1))
    assert cycle(cluster, kept, NOW + 2).reservations == LONG_AGO


def test_a_queues_limit_is_kept_too() -> None:
    """Where only the limit is short, small jobs of the queue do not use up what the gang waits for."""
    cluster = Cluster(8).queue("q", 4, limit=4).job("r", "q", ["n0"], gpus=2, preemptible=False)
    cluster.job("gang", "q", ["", ""], gpus=2).job("small", "q", [""], preemptible=False)
    made = cycle(cluster, cycle(cluster, config=replace(CONFIG, actions=())).reservations)
    (problem,) = made.problems["small"]
    assert isinstance(problem, QueueKept)
    assert "waited longer" in message(problem)
    made = cycle(ends(cluster, "r-0"), made.reservations)
    assert statuses(made) == {"gang-0": "Binding", "gang-1": "Binding"}


def test_room_that_others_left_goes_to_whom_they_left_it_for() -> None:
    """A job that sorts first does not take the place of the gang that its victims were evicted for."""
    cluster = Cluster(2).queue("q", 2).queue("other", 0).job("r", "other", ["n0"], gpus=2)
    first = cycle(cluster.job("gang", "q", ["", ""]))
    assert first.reservations is not None
    assert first.reservations.claims == (("gang", NOW),)
    cluster.state.drop_task("r-0")
    cluster.job("older", "q", [""])
    cluster.state.set_job(replace(cluster.state.jobs["older"].spec, created=-1.0))
    assert "gang-0" not in outcome(cycle(cluster, LONG_AGO))
    assert statuses(cycle(cluster, first.reservations)) == {"gang-0": "Binding", "gang-1": "Binding"}
    urgent = cycle(cluster.job("urgent", "q", [""], priority=90), first.reservations)
    assert "urgent-0" in outcome(urgent)


@given(clusters())
@settings(max_examples=40)
def test_keeping_nodes_leaves_the_state_as_it_was(cluster: Cluster) -> None:
    """Whatever is kept is only tried out; the same input gives the same reservations."""
    before = picture(cluster.state)
    first = cycle(cluster)
    assert picture(cluster.state) == before
    assert cycle(cluster, first.reservations) == cycle(cluster, first.reservations)
    assert picture(cluster.state) == before
