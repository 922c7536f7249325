"""A gang or an object that the scheduler fails on must not stop the others."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from spinney.api.core import Node, Pod
from spinney.api.meta import convert
from spinney.api.storage import CsiNode
from spinney.scheduler.config import Config
from spinney.scheduler.intake import cluster_objects
from spinney.scheduler.place.placer import Placer
from spinney.scheduler.plan import Plan, Stumble, plan
from spinney.scheduler.service.failing_gangs import FailingGangs
from spinney.scheduler.state.gangs import Gang
from spinney.scheduler.state.nodes import Rows
from spinney.scheduler.state.problems import LeftAside
from spinney.scheduler.state.specs import NodeSpec
from spinney.scheduler.why.advice import advice
from spinney.scheduler.why.texts import message
from tests import make
from tests.scheduler.clusters import Cluster, statuses
from tests.scheduler.service.parts import PARTS
from tests.services.stage import stage
from tests.virtual_time import virtual


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The gangs that were tried to be placed; on the one named `bad` it fails half-way."""
    seen: list[str] = []
    place = Placer.place_gang

    def place_gang(placer: Placer, gang: Gang, rows: Rows) -> bool:
        done = place(placer, gang, rows)
        if not placer.trial:
            seen.append(gang.job.key)
            if gang.job.key == "bad":
                raise ValueError("no such row")
        return done

    monkeypatch.setattr(Placer, "place_gang", place_gang)
    return seen


def cluster() -> Cluster:
    """Room for both gangs, one of which breaks every plan."""
    return Cluster(4).queue("q", 100).job("bad", "q", [""]).job("good", "q", [""])


def decide(aside: FailingGangs, stage: Cluster, now: float = 0.0) -> Plan:
    """One more plan."""
    return aside.plan(stage.state, Config(), now, None)


@pytest.mark.usefixtures("tried")
def test_the_others_are_placed_and_it_hears_why_it_waits() -> None:
    """What was done for it is taken back, and its reason says whose fault it is."""
    done = decide(FailingGangs(), cluster())
    assert statuses(done) == {"good-0": "Binding"}
    (problem,) = done.problems["bad"]
    assert isinstance(problem, LeftAside)
    assert "leaves it out until it changes: ValueError: no such row" in message(problem)
    assert "spinney snapshot save" in advice(problem)


def test_it_is_tried_again_when_it_changes_and_from_time_to_time(tried: list[str]) -> None:
    """Between that, no plan is lost on it."""
    aside, stage = FailingGangs(), cluster()
    decide(aside, stage)
    tried.clear()
    decide(aside, stage, now=60.0)
    assert "bad" not in tried
    decide(aside, stage, now=301.0)
    assert "bad" in tried
    tried.clear()
    stage.state.set_job(replace(stage.state.jobs["bad"].spec, priority=7))
    decide(aside, stage, now=302.0)
    assert "bad" in tried


@pytest.mark.usefixtures("tried")
def test_a_plan_alone_says_which_gang_it_failed_on() -> None:
    """Tools that ask for one plan see the fault itself."""
    with pytest.raises(Stumble, match="failed on gang bad") as caught:
        plan(cluster().state, Config(), 0.0)
    assert isinstance(caught.value.__cause__, ValueError)


@virtual
async def test_an_object_that_cannot_be_described_keeps_back_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is left out and logged; what came with it counts."""
    described = cluster_objects.node_spec

    def node_spec(node: Node, storage: CsiNode | None = None) -> NodeSpec:
        if node.name == "bad":
            raise OverflowError("too large")
        return described(node, storage)

    monkeypatch.setattr(cluster_objects, "node_spec", node_spec)
    async with stage(*PARTS) as world:
        for name in ("bad", "good"):
            await world.node(name)
        await world.gang("g", members=1, gpus=1)
        await asyncio.sleep(5)
        (pod,) = (await world.client.list(Pod, "default")).items
        assert pod.spec.node_name == "good"


@pytest.mark.parametrize("said", ["9" * 20, "-1", "many", ""])
def test_a_label_that_counts_nothing_real_stopped_the_scheduler(said: str) -> None:
    """A node's own word on its GPUs is heard only where it can be true."""
    built = make.node("n").label("nvidia.com/gpu.count", said).label("nvidia.com/gpu.memory", said).build()
    spec = cluster_objects.node_spec(convert(Node, built))
    assert (spec.gpu_count, spec.gpu_memory_known) == (None, False)
