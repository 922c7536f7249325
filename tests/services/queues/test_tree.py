"""Usage up the tree, kept by differences, against the same added up from nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest

from spinney.kube.chance import Chance
from spinney.services.queues.tree import FIELDS, Tree, Usage

QUEUES = [f"q{index}" for index in range(6)]
T = TypeVar("T")


def one_of(chance: Chance, choices: Sequence[T]) -> T:
    """Any of them."""
    return choices[int(chance.random() * len(choices))]


def usage(amount: int) -> Usage:
    """So much of everything."""
    return {field: {"gpu": amount} for field in FIELDS}


def added_up(parents: dict[str, str], groups: dict[str, tuple[str, int]], name: str) -> int:
    """What a queue and everything below it hold, the slow way."""
    total = 0
    for first, amount in groups.values():
        queue, way = first, list[str]()
        while queue and queue not in way:
            way.append(queue)
            queue = parents.get(queue, "")
        total += amount if name in way else 0
    return total


@pytest.mark.parametrize("seed", range(20))
def test_differences_add_up(seed: int) -> None:
    """Whatever comes, moves and goes, also queues that are named before they exist, and circles."""
    chance = Chance(seed)
    tree, parents, groups = Tree(), dict[str, str](), dict[str, tuple[str, int]]()
    for _ in range(200):
        name = one_of(chance, QUEUES)
        match one_of(chance, range(4)):
            case 0:
                parents[name] = one_of(chance, ["", *QUEUES])
                tree.put_queue(name, parents[name])
            case 1 if chance.random() < 0.3:
                parents.pop(name, None)
                tree.put_queue(name, None)
            case 2:
                key = f"g{one_of(chance, range(8))}"
                groups.pop(key, None)
                tree.put_group(("", key), "", None)
            case _:
                key, amount = f"g{one_of(chance, range(8))}", one_of(chance, range(1, 9))
                groups[key] = (name, amount)
                assert set(tree.upwards(name)) <= tree.put_group(("", key), name, usage(amount))
        queue = one_of(chance, QUEUES)
        assert tree.total(queue)["allocated"].get("gpu", 0) == added_up(parents, groups, queue)
        assert tree.children(queue) == sorted(child for child, parent in parents.items() if parent == queue)
