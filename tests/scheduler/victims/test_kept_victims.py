"""Who keeps its place though it was chosen to leave, because nobody takes it; and where that ends."""

from __future__ import annotations

from spinney.scheduler.config import Config
from spinney.scheduler.plan import Plan
from tests.scheduler.clusters import Cluster, statuses

PREEMPT = Config(actions=("allocate", "preempt"), staleness_grace=-1)


def evicted(done: Plan) -> set[str]:
    return {decision.task for decision in done.decisions if decision.kind == "evict"}


def test_who_leaves_for_one_gang_goes_though_the_next_makes_room_enough() -> None:
    """Two small jobs go for the first gang, then a large one for the second; that leaves room for one of the small."""
    cluster = Cluster(4).queue("q", 100)
    cluster.job("large", "q", ["n0"], gpus=2, priority=20)
    cluster.job("older", "q", ["n0"], priority=10).job("newer", "q", ["n0"], priority=10)
    cluster.job("first", "q", [""], gpus=2, priority=90).job("second", "q", [""], priority=80)
    done = cluster.plan(config=PREEMPT)
    assert statuses(done) == {
        "large-0": "Releasing",
        "older-0": "Releasing",
        "newer-0": "Releasing",
        "first-0": "Pipelined",
        "second-0": "Pipelined",
    }


def test_a_gang_that_fits_beside_the_one_before_takes_nobody() -> None:
    """One spare pod leaves room for two; the second of them does not end the gang to get a place of its own."""
    cluster = Cluster(4, 2).queue("q", 100)
    cluster.job("elastic", "q", ["n0", "n1", "n0"], gpus=2, minimum=2, priority=10)
    done = cluster.job("first", "q", [""], priority=90).job("second", "q", [""], priority=90).plan(config=PREEMPT)
    assert statuses(done) == {"elastic-2": "Releasing", "first-0": "Pipelined", "second-0": "Pipelined"}


def test_pods_that_free_nothing_of_use_stay() -> None:
    """A job without GPUs ranks lowest and is asked first, but what it has to spare is no help to who needs a GPU."""
    cluster = Cluster(1).queue("q", 100)
    cluster.job("whole", "q", ["n0"], priority=20).job("small", "q", ["n0"] * 3, gpus=0, minimum=1, priority=10)
    done = cluster.job("gang", "q", [""], priority=90).plan(config=PREEMPT)
    assert evicted(done) == {"whole-0"}


def test_a_gang_never_stays_in_part() -> None:
    """Room for one of two pods that need each other is no reason for either to stay."""
    cluster = Cluster(2, 2).queue("q", 100)
    cluster.job("pair", "q", ["n0", "n1"], gpus=2, priority=10)
    done = cluster.job("gang", "q", [""], gpus=2, priority=90).plan(config=PREEMPT)
    assert evicted(done) == {"pair-0", "pair-1"}


def test_a_queue_stays_below_its_limit() -> None:
    """Whoever left so that the limit holds does not stay, though its place is free."""
    cluster = Cluster(4).queue("q", 100, limit=2)
    cluster.job("lesser", "q", ["n0", "n0"], gpus=1, priority=10)
    done = cluster.job("gang", "q", [""], gpus=1, priority=90).plan(config=PREEMPT)
    assert evicted(done) == {"lesser-0", "lesser-1"}


def test_a_gang_that_is_moved_keeps_what_it_needs() -> None:
    """Pods to spare go before the core does, also where only the core is in the way and finds another place."""
    cluster = Cluster(4, 1, 2, 1).queue("q", 100)
    cluster.job("elastic", "q", ["n3", "n1", "n0"], minimum=1, priority=10).job("other", "q", ["n0"], priority=20)
    done = cluster.job("gang", "q", [""], gpus=4, priority=90).plan(config=PREEMPT)
    assert statuses(done) == {
        "elastic-0": "Pipelined",
        "elastic-1": "Releasing",
        "elastic-2": "Releasing",
        "other-0": "Pipelined",
        "gang-0": "Pipelined",
    }


def test_who_is_moved_may_be_moved_though_its_place_stays_free() -> None:
    """Both pods of a gang go where they are scored best, as upstream's do, though one was in nobody's way."""
    cluster = Cluster(1, 4, 2, 1).queue("q", 100)
    cluster.job("single", "q", ["n1"], priority=20).job("pair", "q", ["n2", "n1"], priority=20)
    done = cluster.job("gang", "q", [""], gpus=4, priority=90).plan(config=PREEMPT)
    assert statuses(done)["pair-0"] == "Pipelined"
    assert not any(status == "Releasing" for status in statuses(done).values())


def test_a_gang_is_not_placed_again_for_the_sake_of_its_victims() -> None:
    """The second gang's victims would have been enough for both; the first keeps the place that others left for it."""
    cluster = Cluster(2, 4).queue("q", 100)
    cluster.job("one", "q", ["n0"], priority=20).job("other", "q", ["n0"], priority=10)
    cluster.job("pair", "q", ["n1", "n1"], gpus=2, priority=20)
    done = cluster.job("first", "q", [""], priority=90).job("second", "q", [""], priority=90).plan(config=PREEMPT)
    assert evicted(done) == {"other-0", "pair-0", "pair-1"}
