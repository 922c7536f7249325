"""Small clusters, looked at exhaustively: when nothing is done nothing could be, and nobody is evicted in vain."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as some

from spinney.scheduler import status as st
from spinney.scheduler.config import Config
from spinney.scheduler.plan import Plan
from tests.scheduler.clusters import Cluster

Lesser = dict[str, list[tuple[int, int]]]
PREEMPT = Config(actions=("allocate", "preempt"), staleness_grace=-1)


@some.composite
def full(draw: some.DrawFn) -> tuple[Cluster, list[int], Lesser]:
    """Up to four nodes with lesser jobs on them, what they leave free, and where each lesser job is, task by task."""
    sizes = draw(some.lists(some.sampled_from([1, 2, 4]), min_size=1, max_size=4))
    cluster, left = Cluster(*sizes).queue("q", 100), list(sizes)
    lesser: Lesser = {}
    for number in range(draw(some.integers(0, 6))):
        gpus, count = draw(some.sampled_from([1, 2])), draw(some.integers(1, 2))
        places = []
        for _ in range(count):
            node = draw(some.integers(0, len(sizes) - 1))
            if left[node] >= gpus:
                left[node] -= gpus
                places.append(node)
        if len(places) < count:
            for node in places:
                left[node] += gpus
            continue
        priority = draw(some.sampled_from([10, 20, 95]))
        cluster.job(f"r{number}", "q", [f"n{node}" for node in places], gpus=gpus, priority=priority)
        if priority < 90:
            lesser[f"r{number}"] = [(node, gpus) for node in places]
    return cluster, left, lesser


def fits(left: list[int], gpus: int, count: int) -> bool:
    return sum(room // gpus for room in left) >= count


def without(left: list[int], gone: Iterable[list[tuple[int, int]]]) -> list[int]:
    rooms = list(left)
    for node, gpus in chain.from_iterable(gone):
        rooms[node] += gpus
    return rooms


def subsets(names: Iterable[str]) -> Iterable[tuple[str, ...]]:
    known = list(names)
    return chain.from_iterable(combinations(known, size) for size in range(len(known) + 1))


def after_moves(done: Plan, left: list[int], lesser: Lesser) -> tuple[set[str], list[int]]:
    """Jobs that lost their place, and what is free with them still there and those that were moved in their new one."""
    lost: set[str] = set()
    rooms = list(left)
    for key, (status, node, _) in done.outcome.items():
        job, _, number = key.rpartition("-")
        if status == st.RELEASING:
            lost.add(job)
        elif status == st.PIPELINED and job in lesser:
            home, gpus = lesser[job][int(number)]
            rooms[home] += gpus
            rooms[int(node[1:])] -= gpus
    return lost, rooms


@given(full(), some.sampled_from([1, 2, 4]), some.integers(1, 3))
def test_preemption_is_neither_blind_nor_wasteful(
    setting: tuple[Cluster, list[int], Lesser], gpus: int, count: int
) -> None:
    """A gang waits only if no set of lesser jobs makes room for it; of those evicted none could have stayed."""
    cluster, left, lesser = setting
    done = cluster.job("gang", "q", [""] * count, gpus=gpus, priority=90).plan(config=PREEMPT)
    placed = any(decision.job == "gang" for decision in done.decisions)
    possible = any(fits(without(left, (lesser[name] for name in some)), gpus, count) for some in subsets(lesser))
    assert placed == possible
    lost, rooms = after_moves(done, left, lesser)
    for fewer in subsets(lost):
        if len(fewer) < len(lost):
            assert not fits(without(rooms, (lesser[name] for name in fewer)), gpus, count)
