"""Scaling groups of many replicas: what they cost grows with them, and not with their square."""

from __future__ import annotations

from collections import Counter

import pytest

from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.meta import Key
from spinney.grove.replica.controller import ReplicaController
from tests import make
from tests.grove.stage import Stage
from tests.grove.virtual import played

REPLICAS = 300


@pytest.fixture
def reconciles(monkeypatch: pytest.MonkeyPatch) -> Counter[Key]:
    """How often each set replica was reconciled."""
    counts: Counter[Key] = Counter()
    reconcile = ReplicaController.reconcile

    async def counted(self: ReplicaController, key: Key) -> object:
        counts[key] += 1
        return await reconcile(self, key)

    monkeypatch.setattr(ReplicaController, "reconcile", counted)
    return counts


@played(nodes=1)
async def test_a_replica_was_looked_at_whole_for_every_few_of_its_gangs(stage: Stage, reconciles: Counter[Key]) -> None:
    """Changes of a large replica are gathered: its backend and its deletion change its gangs a few at a time."""
    pcs = make.pcs("large").clique("a", schedulerName="kai-scheduler").group("g", ["a"], REPLICAS)
    await stage.apply(pcs.build())
    await stage.settle()
    assert len(await stage.list(Pod)) == REPLICAS
    created = reconciles.total()

    await stage.delete(PodCliqueSet, "large")
    await stage.settle()
    assert not await stage.list(PodClique)
    assert created < 12
    assert reconciles.total() - created < 8
