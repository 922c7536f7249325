"""Small clusters, looked at exhaustively: of those who lose their place for a gang, none could have kept it.

A gang gives pods up in its own order: those it has to spare one by one, the last first, then all that is left. So a set
of victims is irreducible if no proper part of it, taken in that order, would have been enough for the gang they left
for, wherever that is placed, while those who were moved are where they were moved to, and those who were served later
keep the places they got. And where one gang was served, nobody has gone whose place is free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product

import pytest
from hypothesis import given
from hypothesis import strategies as some

from spinney.scheduler.config import Config
from spinney.scheduler.plan import Decision, Plan
from spinney.scheduler.state import status as st
from tests.scheduler.clusters import Cluster, outcome
from tests.scheduler.exhaustive import pack

PREEMPT, RECLAIM = ("allocate", "preempt"), ("allocate", "reclaim")
ALL = ("allocate", "consolidation", "reclaim", "preempt")
Pod = tuple[str, int]


@dataclass
class Crowd:
    """Gangs with pods to spare on at most four nodes: what is left there, their GPUs, minimums and homes."""

    cluster: Cluster
    left: list[float]
    gpus: dict[str, int] = field(default_factory=dict)
    minimum: dict[str, int] = field(default_factory=dict)
    homes: dict[Pod, int] = field(default_factory=dict)

    def pods(self, name: str) -> list[int]:
        """The pods of a gang that are somewhere, in the gang's order."""
        return sorted(number for gang, number in self.homes if gang == name)

    def ways(self, name: str) -> list[set[int]]:
        """Which pods a gang may give up together: none, some of those to spare from the last on, or all."""
        pods = self.pods(name)
        spare = max(len(pods) - self.minimum[name], 0)
        return [set(pods[len(pods) - count :]) if count else set() for count in (*range(spare + 1), len(pods))]


@some.composite
def crowded(draw: some.DrawFn, claimants: int, queues: int = 1, priority: int = 90) -> Crowd:
    """Up to eight pods that run in elastic gangs, and gangs that wait in the first queue."""
    sizes = draw(some.lists(some.sampled_from([1, 2, 4]), min_size=1, max_size=4))
    crowd = Crowd(Cluster(*sizes), [float(size) for size in sizes])
    crowd.cluster.queue("q0", sum(sizes))
    for number in range(1, queues):
        crowd.cluster.queue(f"q{number}", draw(some.integers(0, 2)), weight=draw(some.integers(0, 2)))
    for name in (f"r{number}" for number in range(draw(some.integers(1, 5)))):
        gpus, nodes = draw(some.sampled_from([1, 1, 2])), list[int]()
        for node in draw(some.lists(some.integers(0, len(sizes) - 1), min_size=1, max_size=3)):
            if crowd.left[node] >= gpus and len(crowd.homes) < 8:
                crowd.left[node] -= gpus
                crowd.homes[name, len(nodes)] = node
                nodes.append(node)
        if nodes:
            crowd.gpus[name], crowd.minimum[name] = gpus, draw(some.integers(1, len(nodes)))
            queue = f"q{draw(some.integers(min(1, queues - 1), queues - 1))}"
            places = [f"n{node}" for node in nodes]
            priority_here = draw(some.sampled_from([10, 20]))
            crowd.cluster.job(name, queue, places, gpus=gpus, minimum=crowd.minimum[name], priority=priority_here)
    for name in (f"g{number}" for number in range(claimants)):
        crowd.gpus[name], count = draw(some.sampled_from([1, 1, 2, 4])), draw(some.integers(1, 3))
        crowd.cluster.job(name, "q0", [""] * count, gpus=crowd.gpus[name], priority=priority)
    return crowd


def pod(decision: Decision) -> Pod:
    name, _, number = decision.task.rpartition("-")
    return name, int(number)


@dataclass
class Served:
    """One gang that others made room for: where its pods were placed, and who was lost or moved, to which node."""

    placed: list[tuple[str, int]]
    lost: dict[str, set[int]]
    moved: dict[Pod, int]


def served(done: Plan, setting: Crowd) -> Iterator[tuple[list[float], Served, dict[Pod, int]]]:
    """What was left on the nodes before each gang was served, what that took, and where pods had been."""
    rooms = setting.left
    for (_, gang), decisions in groupby(done.decisions, key=lambda decision: (decision.action, decision.beneficiary)):
        before, served_gang = list(rooms), Served([], {}, {})
        gone = dict(setting.homes)
        for decision in decisions:
            (name, number), node = pod(decision), int(decision.node[1:])
            gpus = setting.gpus[name]
            rooms[node] += gpus if decision.kind == "evict" else -gpus
            if decision.kind == "evict":
                served_gang.lost.setdefault(name, set()).add(number)
                gone.pop((name, number), None)
            elif number in served_gang.lost.get(name, ()):
                served_gang.lost[name].discard(number)
                served_gang.moved[name, number] = node
                gone[name, number] = node
            elif name == gang or not gang:
                served_gang.placed.append((name, node))
        if gang and not any(name.startswith("g") for name in served_gang.lost):
            yield before, served_gang, setting.homes
        setting.homes = gone


def fewer(setting: Crowd, served_gang: Served) -> Iterator[dict[str, set[int]]]:
    """Every proper part of the lost that gangs could have given up in their order."""
    names = list(served_gang.lost)
    ways = []
    for name in names:
        moved = {number for gang, number in served_gang.moved if gang == name}
        parts = [way - moved for way in setting.ways(name) if moved <= way and way - moved <= served_gang.lost[name]]
        ways.append([*(part for part in parts if part != served_gang.lost[name]), served_gang.lost[name]])
    for choice in product(*ways):
        part = dict(zip(names, choice, strict=True))
        if part != served_gang.lost:
            yield part


def assert_irreducible(done: Plan, setting: Crowd) -> None:
    """No gang could have done with fewer: it has no place, or somebody has none who was served after it."""
    reductions = list(served(done, setting))
    for before, served_gang, homes in reductions:
        setting.homes = homes
        for part in fewer(setting, served_gang):
            rooms, later = list(before), list(setting.left)
            for name, node in served_gang.placed:
                later[node] += setting.gpus[name]
            for name, gone in served_gang.lost.items():
                for number in part[name]:
                    rooms[homes[name, number]] += setting.gpus[name]
                for number in gone - part[name]:
                    later[homes[name, number]] -= setting.gpus[name]
            for who, node in served_gang.moved.items():
                rooms[homes[who]] += setting.gpus[who[0]]
                rooms[node] -= setting.gpus[who[0]]
            both = tuple(map(min, rooms, later))
            wanted = sorted((float(setting.gpus[name]) for name, _ in served_gang.placed), reverse=True)
            assert min(both) < 0 or not pack(both, wanted), part


def assert_no_place_is_left_free(done: Plan, setting: Crowd) -> None:
    """What a gang would get back first, its core or else one pod, no longer fits where it was."""
    places = {key: (status, int(node[1:])) for key, (status, node, _) in outcome(done).items()}
    rooms = list(setting.left)
    for decision in done.decisions:
        rooms[int(decision.node[1:])] += setting.gpus[pod(decision)[0]] * (1 if decision.kind == "evict" else -1)
    for name, minimum in setting.minimum.items():
        gone = {number for number in setting.pods(name) if places.get(f"{name}-{number}", (0, 0))[0] == st.RELEASING}
        moved = any(places.get(f"{name}-{number}", (0, 0))[0] == st.PIPELINED for number in setting.pods(name))
        if not gone or moved:
            continue
        back = sorted(gone)[: max(1, minimum - (len(setting.pods(name)) - len(gone)))]
        after = list(rooms)
        for number in back:
            after[setting.homes[name, number]] -= setting.gpus[name]
        assert min(after) < 0, (name, back)


def planned(setting: Crowd, actions: Sequence[str]) -> Plan:
    config = Config(actions=tuple(actions), staleness_grace=-1, consolidation_victims=-1)
    return setting.cluster.plan(config=config)


def judge(setting: Crowd, actions: Sequence[str]) -> None:
    done = planned(setting, actions)
    assert_no_place_is_left_free(done, setting)
    assert_irreducible(done, setting)


@given(crowded(claimants=1))
def test_no_pod_is_preempted_in_vain(setting: Crowd) -> None:
    """Of the pods of lesser gangs that leave, spare ones or whole gangs, none could have stayed."""
    judge(setting, PREEMPT)


@given(crowded(claimants=1, queues=3, priority=20))
def test_no_pod_is_reclaimed_in_vain(setting: Crowd) -> None:
    """The same for what other queues have borrowed."""
    judge(setting, RECLAIM)


@pytest.mark.parametrize("actions", [PREEMPT, RECLAIM, ALL], ids=["preempt", "reclaim", "all"])
@given(data=some.data())
def test_no_pod_leaves_in_vain_for_one_of_several_gangs(actions: tuple[str, ...], data: some.DataObject) -> None:
    """Each gang takes no more than it needs, as things are when it is served."""
    queues, priority = (1, 90) if actions is PREEMPT else (2, 20 if actions is RECLAIM else 90)
    setting = data.draw(crowded(claimants=2, queues=queues, priority=priority))
    assert_irreducible(planned(setting, actions), setting)
