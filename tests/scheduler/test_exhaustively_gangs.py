"""Small clusters, looked at exhaustively: elastic gangs, trees of subgroups, required domains, shared GPUs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import product

from hypothesis import given
from hypothesis import strategies as some

from spinney.scheduler.config import Config
from spinney.scheduler.plan import Plan
from spinney.scheduler.state import status as st
from spinney.scheduler.state.specs import Constraint, GroupSpec, TopologySpec, gang
from tests.scheduler.clusters import Cluster, outcome
from tests.scheduler.exhaustive import (
    SIZES,
    Device,
    Holding,
    Small,
    after_moves,
    assert_nobody_left_in_vain,
    room_for,
    sharing,
    small,
    subsets,
)

PREEMPT = Config(actions=("allocate", "preempt"), staleness_grace=-1)


def placed(done: Plan) -> int:
    """How many tasks of the gang got a place."""
    return sum(key.startswith("gang-") and status != st.RELEASING for key, (status, _, _) in outcome(done).items())


def lesser(setting: Small) -> list[str]:
    return [name for name, workload in setting.running.items() if workload.priority < 90 and workload.preemptible]


@given(small(priorities=(10, 20, 95)), SIZES, some.integers(1, 2), some.integers(1, 2))
def test_an_elastic_gang_gets_its_minimum_or_nothing(setting: Small, gpus: int, minimum: int, more: int) -> None:
    """It waits only if no set of lesser jobs makes room for its minimum; nobody leaves in vain for what it got."""
    cluster = setting.cluster.job("gang", "q0", [""] * (minimum + more), gpus=gpus, minimum=minimum, priority=90)
    done = cluster.plan(config=PREEMPT)
    possible = any(setting.fits(setting.without(gone), [gpus] * minimum) for gone in subsets(lesser(setting)))
    assert placed(done) >= minimum if possible else placed(done) == 0
    assert_nobody_left_in_vain(done, setting, [gpus] * placed(done))


@some.composite
def elastic(draw: some.DrawFn) -> tuple[Cluster, list[int], dict[str, tuple[int, list[int]]]]:
    """Nodes, and lesser gangs with pods of one GPU to spare: the minimum of each, and the nodes of its pods."""
    sizes = draw(some.lists(some.integers(1, 4), min_size=1, max_size=4))
    cluster, left = Cluster(*sizes).queue("q", 100), list(sizes)
    running: dict[str, tuple[int, list[int]]] = {}
    for name in (f"r{number}" for number in range(draw(some.integers(1, 3)))):
        nodes: list[int] = []
        for node in draw(some.lists(some.integers(0, len(sizes) - 1), min_size=1, max_size=3)):
            if left[node]:
                left[node] -= 1
                nodes.append(node)
        if nodes:
            minimum = draw(some.integers(1, len(nodes)))
            cluster.job(name, "q", [f"n{node}" for node in nodes], minimum=minimum, priority=10)
            running[name] = minimum, nodes
    return cluster, left, running


@given(elastic(), some.integers(1, 3), some.integers(1, 2))
def test_pods_to_spare_go_before_gangs_do(
    setting: tuple[Cluster, list[int], dict[str, tuple[int, list[int]]]], gpus: int, count: int
) -> None:
    """A gang waits only if no choice of spare pods and whole gangs is enough; the last pods go first, the core last."""
    cluster, left, running = setting
    done = cluster.job("gang", "q", [""] * count, gpus=gpus, priority=90).plan(config=PREEMPT)
    # From each gang nobody, some of the pods to spare from the last on, or all.
    ways = [[*range(len(nodes) - minimum + 1), len(nodes)] for minimum, nodes in running.values()]

    def enough(counts: Iterable[int]) -> bool:
        rooms = list(left)
        for gone, (_, nodes) in zip(counts, running.values(), strict=True):
            for node in nodes[len(nodes) - gone :]:
                rooms[node] += 1
        return sum(room // gpus for room in rooms) >= count

    assert (placed(done) == count) == any(map(enough, product(*ways)))
    for name, (minimum, nodes) in running.items():
        gone = [
            number
            for number in range(len(nodes))
            if outcome(done).get(f"{name}-{number}", (st.RUNNING,))[0] == st.RELEASING
        ]
        assert not gone or gone == list(range(len(nodes)))[-len(gone) :]
        assert len(gone) <= len(nodes) - minimum or len(gone) == len(nodes)


@given(small(priorities=(10, 20, 95)), some.integers(1, 2), some.integers(1, 2), some.integers(1, 3))
def test_a_tree_gets_as_many_subgroups_as_it_needs(setting: Small, gpus: int, size: int, needed: int) -> None:
    """A gang of equal subgroups waits only if so many of them as it needs fit in no way; nobody leaves in vain."""
    leaves = tuple(GroupSpec(name, minimum=size) for name in ("a", "b", "c"))
    tree = GroupSpec(minimum=needed, members=leaves)
    cluster = setting.cluster.job("gang", "q0", [""] * 3 * size, gpus=gpus, priority=90, tree=tree)
    for number in range(3 * size):
        spec = cluster.state.tasks[f"gang-{number}"].spec
        cluster.state.set_task(replace(spec, group="abc"[number // size]))
    done = cluster.plan(config=PREEMPT)
    wanted = [gpus] * size * needed
    possible = any(setting.fits(setting.without(gone), wanted) for gone in subsets(lesser(setting)))
    assert placed(done) >= len(wanted) if possible else placed(done) == 0
    assert placed(done) % size == 0
    assert_nobody_left_in_vain(done, setting, [gpus] * placed(done))


@given(small(priorities=(10, 20, 95)), some.data(), SIZES, some.integers(1, 3))
def test_a_required_domain_is_cleared_wherever_that_is_possible(
    setting: Small, data: some.DataObject, gpus: int, count: int
) -> None:
    """A gang that must stay in one rack waits only if no rack can be cleared for it; nobody leaves in vain."""
    cluster, wanted = setting.cluster, [gpus] * count
    racks = [data.draw(some.sampled_from("xy")) for _ in setting.left]
    for number, rack in enumerate(racks):
        spec = cluster.state.nodes.spec(number)
        cluster.state.set_node(replace(spec, labels={"rack": rack}))
    cluster.state.set_topology(TopologySpec("tree", (("rack", ""),)))
    tree = gang(count, Constraint("tree", required="rack"))
    done = cluster.job("gang", "q0", [""] * count, gpus=gpus, priority=90, tree=tree).plan(config=PREEMPT)

    def rooms_in(rack: str, rooms: list[float]) -> list[float]:
        return [room if here == rack else 0.0 for here, room in zip(racks, rooms, strict=True)]

    possible = any(
        setting.fits(rooms_in(rack, setting.without(gone)), wanted)
        for rack in set(racks)
        for gone in subsets(lesser(setting))
    )
    assert (placed(done) == count) == possible
    homes = {racks[int(node[1:])] for key, (_, node, _) in outcome(done).items() if key.startswith("gang-")}
    assert len(homes) <= 1
    lost, rooms = after_moves(done, setting)
    for fewer in subsets(lost):
        if len(fewer) < len(lost):
            back = setting.without(fewer)
            still = [room + more - less for room, more, less in zip(rooms, back, setting.left, strict=True)]
            assert min(still) < 0 or not any(setting.fits(rooms_in(rack, still), wanted) for rack in homes)


@cache
def packs(left: tuple[tuple[int, float], ...], sizes: tuple[float, ...]) -> bool:
    """Whether tasks, the largest first, go onto devices, each its node and what is left of it, in any way at all."""
    if not sizes:
        return True
    size, rest = sizes[0], sizes[1:]
    if size > 1:
        for node in {node for node, _ in left}:
            empty = [number for number, (home, part) in enumerate(left) if home == node and part == 1][: int(size)]
            if len(empty) == size:
                taken = tuple((home, 0.0 if number in empty else part) for number, (home, part) in enumerate(left))
                if packs(tuple(sorted(taken)), rest):
                    return True
        return False
    return any(
        packs(tuple(sorted((*left[:number], (node, part - size), *left[number + 1 :]))), rest)
        for (node, part), number in {device: number for number, device in enumerate(left)}.items()
        if part >= size
    )


def fits_devices(left: dict[Device, float], held: Holding, moved: Iterable[str], wanted: list[float]) -> bool:
    """Whether some gangs could be placed anew, together with a new one."""
    rooms, sizes = dict(left), list(wanted)
    for part, devices in map(held.__getitem__, moved):
        for device in devices:
            rooms[device] += part
            sizes.append(part)
    return packs(tuple(sorted((node, part) for (node, _), part in rooms.items())), tuple(sorted(sizes, reverse=True)))


@given(sharing((10, 20)), some.sampled_from([0.5, 0.75, 1, 2]), some.integers(1, 2))
def test_consolidation_of_shared_gpus_loses_nobody(
    setting: tuple[Cluster, dict[Device, float], Holding], gpus: float, count: int
) -> None:
    """A gang that consolidation makes room for fits beside everyone who was moved; one that waits fits in no way."""
    cluster, left, held = setting
    config = Config(actions=("allocate", "consolidation"), staleness_grace=-1)
    done = cluster.job("gang", "q", [""] * count, gpus=gpus).plan(config=config)
    assert not any(status == st.RELEASING for status, _, _ in outcome(done).values())
    possible = any(fits_devices(left, held, moved, [gpus] * count) for moved in subsets(held))
    assert (placed(done) == count) == possible


@given(sharing((10, 20)), some.sampled_from([0.5, 0.75, 1, 2]), some.integers(1, 3))
def test_reclaim_sees_every_way_to_free_shared_gpus(
    setting: tuple[Cluster, dict[Device, float], Holding], gpus: float, count: int
) -> None:
    """What a queue is owed it gets if any gangs of a queue that is owed nothing free enough; nobody leaves in vain."""
    cluster, left, held = setting
    config = Config(actions=("allocate", "reclaim"), staleness_grace=-1)
    cluster.queue("q", 0).queue("mine", 100)
    done = cluster.job("gang", "mine", [""] * count, gpus=gpus).plan(config=config)

    def enough(gone: Iterable[str]) -> bool:
        rooms = dict(left)
        for part, devices in map(held.__getitem__, gone):
            for device in devices:
                rooms[device] += part
        return room_for(rooms, gpus) >= count

    assert placed(done) == count or not any(map(enough, subsets(held)))
    states = {key.rpartition("-")[0]: status for key, (status, _, _) in outcome(done).items()}
    lost = {name for name, status in states.items() if status == st.RELEASING}
    if st.PIPELINED not in (states[name] for name in states if name != "gang"):
        assert not any(enough(fewer) for fewer in subsets(lost) if len(fewer) < len(lost))
